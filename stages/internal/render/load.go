package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
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

// printable fails if a file of a chart, or of a packed dependency, has a name that could pass for
// other text.
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
	text, err := ReadFile(root, name)
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// maxFile is the largest file of a release that is read as manifests or values, in bytes: ten
// times the largest set of CRDs that is known.
const maxFile = 16 << 20

// ReadFile is fs.ReadFile for files of a release: of limited size, and with limited aliases.
func ReadFile(fsys fs.FS, name string) ([]byte, error) {
	text, err := bounded.FS(fsys, name, maxFile)
	if err != nil {
		return nil, err
	}
	if err := document.CheckAliases(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func closeSchemas(ch *chart.Chart) error {
	if ch.Schema != nil {
		var err error
		if ch.Schema, err = closedSchema(ch.Schema); err != nil {
			return fmt.Errorf("cannot load values.schema.json: the chart %s: %w", ch.Name(), err)
		}
	}
	for _, d := range ch.Dependencies() {
		if err := closeSchemas(d); err != nil {
			return err
		}
	}
	return nil
}

// closedSchema is a schema without references that lead out of it. The compiler that refuses
// them, not the search for them, is what makes sure of that.
func closedSchema(text []byte) ([]byte, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if compiles(doc) == nil {
		return text, nil
	}
	removeReferences(doc)
	if err := compiles(doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// compiles fails unless a schema can be compiled from itself alone.
func compiles(doc any) error {
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none
	const url = "file:///values.schema.json"  // as Helm names it
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	_, err := c.Compile(url)
	return err
}

// removeReferences removes the references that do not begin with #, the names by which such a
// reference could lead elsewhere, and drafts of JSON schema that nobody knows.
func removeReferences(doc any) {
	switch v := doc.(type) {
	case map[string]any:
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$id", "id"} {
			if ref, is := v[key].(string); is && !strings.HasPrefix(ref, "#") {
				delete(v, key)
			}
		}
		if draft, is := v["$schema"]; is && !strings.Contains(fmt.Sprint(draft), "//json-schema.org/") {
			delete(v, "$schema")
		}
		for _, inner := range v {
			removeReferences(inner)
		}
	case []any:
		for _, inner := range v {
			removeReferences(inner)
		}
	}
}
