package cli

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
)

// skeleton has the files that a platform release begins with.
//
//go:embed all:skeleton
var skeleton embed.FS

// placeholder stands in the files for the platform's name.
const placeholder = "__NAME__"

// writeSkeleton writes a small platform release to an empty or missing directory. It installs with images of every
// bundle. If that fails, it removes what it wrote.
func writeSkeleton(dir, name string) (err error) {
	files, err := fs.Sub(skeleton, "skeleton")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		entries, _ := fs.ReadDir(files, ".")
		for _, e := range entries {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // err says why
		}
	}()
	return fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o755))
		}
		text, err := bounded.FS(files, file, bounded.Generated)
		if err != nil {
			return err
		}
		return os.WriteFile(to, []byte(strings.ReplaceAll(string(text), placeholder, name)), 0o644)
	})
}
