// Package skeleton has the files that a platform release begins with, and writes them.
package skeleton

import (
	"embed"
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

// Release returns the files of a small platform release by path. It installs with images of every bundle.
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

// Write writes the files of Release to an empty or missing directory. If that fails, it removes what
// it wrote.
func Write(dir, name string) (err error) {
	files, err := Release(name)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		for path := range files {
			top, _, _ := strings.Cut(path, "/")
			_ = os.RemoveAll(filepath.Join(dir, top)) // err says why
		}
	}()
	for path, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
