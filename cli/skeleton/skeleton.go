// Package skeleton has the files that a platform release begins with, and writes them.
package skeleton

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
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
// empty; another one is NotEmpty. When it fails, nothing is left in the directory.
func Write(dir string, files map[string][]byte) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return &NotEmpty{Holds: entries[0].Name()}
	}
	defer func() {
		if err == nil {
			return
		}
		for name := range files {
			first, _, _ := strings.Cut(name, "/")
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, first)))
		}
	}()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
