// Package skeleton has the files that a platform release begins with, and writes them.
package skeleton

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

//go:embed all:files
var embedded embed.FS

// placeholder stands in the files for the platform's name.
const placeholder = "__NAME__"

// Release returns the files of a release of the platform name, by their paths with
// slashes. It installs as it is, with images that every bundle has.
func Release(name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	const root = "files"
	err := fs.WalkDir(embedded, root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := bounded.FS(embedded, file, bounded.Generated)
		out[strings.TrimPrefix(file, root+"/")] = []byte(strings.ReplaceAll(string(text), placeholder, name))
		return err
	})
	return out, err
}

// NotEmpty is the error of a directory that holds something.
type NotEmpty struct{ Holds string }

func (e *NotEmpty) Error() string { return "it is not empty: it holds " + e.Holds }

// Write writes files, by their paths with slashes, to a directory that does not exist or is
// empty; another one is NotEmpty. When it fails, the directory is as it was. One of a writer
// that was killed is no platform release.
func Write(dir string, files map[string][]byte) (err error) {
	entries, err := os.ReadDir(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		err = os.MkdirAll(dir, 0o755)
	case err == nil && len(entries) > 0:
		err = &NotEmpty{Holds: entries[0].Name()}
	}
	if err != nil {
		return err
	}
	var undo []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range undo {
			err = errors.Join(err, os.RemoveAll(name))
		}
		if missing {
			err = errors.Join(err, os.Remove(dir))
		}
	}()
	stage, err := os.MkdirTemp(dir, atomicfile.Unfinished)
	if err != nil {
		return err
	}
	undo = append(undo, stage)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(stage, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
	}
	for _, name := range roots(files) {
		to := filepath.Join(dir, name)
		if err := os.Rename(filepath.Join(stage, name), to); err != nil {
			return err
		}
		undo = append(undo, to)
	}
	if err := os.Remove(stage); err != nil {
		return fmt.Errorf("remove what the files were written to: %w", err)
	}
	return nil
}

// roots are the first parts of the files' paths, each once. The file that makes the
// directory a release is the last one.
func roots(files map[string][]byte) []string {
	var out []string
	for name := range files {
		first, _, _ := strings.Cut(path.Clean(name), "/")
		out = append(out, first)
	}
	slices.SortFunc(out, func(a, b string) int {
		last := map[bool]int{true: 1}
		return cmp.Or(last[a == platform.File]-last[b == platform.File], strings.Compare(a, b))
	})
	return slices.Compact(out)
}
