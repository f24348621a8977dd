package render

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
)

// maxChart is how large the files of a chart may be together, in bytes. How large one may be is
// Helm's: loader.MaxDecompressedFileSize.
const maxChart = 64 << 20

// LoadChart reads the chart in dir as Helm does, from regular files of limited size. Helm would
// read files and ask addresses that the chart's JSON schema of its values refers to; here such a
// reference accepts every value.
func LoadChart(ctx context.Context, fsys fs.FS, dir string) (*chart.Chart, error) {
	return bounded.Work(ctx, bounded.Usual(), func() (*chart.Chart, error) {
		root, err := fs.Sub(fsys, dir)
		if err != nil {
			return nil, err
		}
		files, err := chartFiles(root)
		if err != nil {
			return nil, err
		}
		ch, err := loader.LoadFiles(files)
		if err != nil {
			return nil, err
		}
		if err := printable(ch); err != nil {
			return nil, err
		}
		return ch, closeSchemas(ch)
	})
}

// printable fails if a file in a chart, or in one that is packed in it, has a name that could pass
// for other text.
func printable(ch *chart.Chart) error {
	for _, f := range ch.Raw {
		if strings.ContainsFunc(f.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("%q: its name has a character that cannot be printed", f.Name)
		}
	}
	for _, d := range ch.Dependencies() {
		if err := printable(d); err != nil {
			return fmt.Errorf("chart %s: %w", d.Name(), err)
		}
	}
	return nil
}

// chartFiles are the files of a chart but for those that its .helmignore names.
func chartFiles(root fs.FS) ([]*loader.BufferedFile, error) {
	rules := ignore.Empty()
	if info, err := fs.Lstat(root, ignore.HelmIgnore); err == nil {
		text, err := chartFile(root, ignore.HelmIgnore, info)
		if err != nil {
			return nil, err
		}
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("cannot load %s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	var out []*loader.BufferedFile
	size := int64(0)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && rules.Ignore(name, info):
			return fs.SkipDir
		case entry.IsDir() || rules.Ignore(name, info):
			return nil
		}
		if size += info.Size(); size > maxChart && info.Size() <= loader.MaxDecompressedFileSize {
			return fmt.Errorf("the files of the chart are larger than %d MiB together; name what is no part of it in %s", maxChart>>20, ignore.HelmIgnore)
		}
		text, err := chartFile(root, name, info)
		if err != nil {
			return err
		}
		out = append(out, &loader.BufferedFile{Name: name, Data: text})
		return nil
	})
	return out, err
}

// chartFile reads one file. Nothing is opened that is no regular file.
func chartFile(root fs.FS, name string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot load %s: it is no regular file", name)
	}
	if info.Size() > loader.MaxDecompressedFileSize {
		return nil, fmt.Errorf("cannot load %s: it is larger than the %d MiB that Helm takes", name, loader.MaxDecompressedFileSize>>20)
	}
	text, err := readFile(root, name)
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// maxFile is the largest file of a release that is read as manifests or values, in bytes: ten
// times the largest set of CRDs that is known.
const maxFile = 16 << 20

// readFile is fs.ReadFile for files of a release: of limited size, and with limited aliases.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	text, err := bounded.FS(fsys, name, maxFile)
	if err != nil {
		return nil, err
	}
	if err := document.CheckAliases(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
