package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// file is a file of an archive or a package.
type file struct {
	name string // slash-separated, in the archive
	path string // where its content is
	mode fs.FileMode
}

// texts writes completions and man pages into the folder dir, and lists what is beside the
// program in every archive.
func (o *options) texts(ctx context.Context, s *source, p program, dir string) ([]file, error) {
	all := []file{{"LICENSE", filepath.Join(s.root, "LICENSE"), 0o644}, {"README.md", filepath.Join(s.root, "README.md"), 0o644}}
	for _, folder := range []string{"completions", "man"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	for _, c := range [][2]string{{"bash", "slipway.bash"}, {"zsh", "_slipway"}, {"fish", "slipway.fish"}, {"powershell", "slipway.ps1"}} {
		script, err := p.says(ctx, "completion", c[0])
		if err != nil {
			return nil, err
		}
		f := file{"completions/" + c[1], filepath.Join(dir, "completions", c[1]), 0o644}
		if err := os.WriteFile(f.path, script, 0o644); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	description, err := p.says(ctx, "commands")
	if err != nil {
		return nil, err
	}
	var root command
	if err := json.Unmarshal(description, &root); err != nil {
		return nil, fmt.Errorf("read the commands of the program: %w", err)
	}
	if err := manual(root, o.version, s.at, filepath.Join(dir, "man")); err != nil {
		return nil, fmt.Errorf("write the man pages: %w", err)
	}
	pages, err := os.ReadDir(filepath.Join(dir, "man"))
	for _, page := range pages {
		all = append(all, file{"man/" + page.Name(), filepath.Join(dir, "man", page.Name()), 0o644})
	}
	return all, err
}
