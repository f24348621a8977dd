package gotool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// Instead is a module that a command is built from, with other files than it is published
// with. Go takes no file of its module cache to be another one (-overlay), so that it is built
// from a copy.
type Instead struct {
	Module string // path; the tools module pins its version
	Files  string // folder below the tools module, whose files replace those at the same paths; empty for none
	// Links are files that the module's repository has as symbolic links, which no module can
	// have: what they lead to, by path in the module.
	Links map[string]string
}

// inputs are what a build depends on, but for the content of the files.
func (i *Instead) inputs() []string {
	all := []string{i.Module, i.Files}
	for _, link := range slices.Sorted(maps.Keys(i.Links)) {
		all = append(all, link, i.Links[link])
	}
	return all
}

// prepare copies the module with the other files into the folder work, and beside it go.mod
// and go.sum of the tools module, which take the copy: it gives their folder. A file that
// takes the place of none is an error, as is a link where the module has a file.
func (i *Instead) prepare(ctx context.Context, tools, work string) (string, error) {
	from, err := ModuleDir(ctx, tools, i.Module)
	if err != nil {
		return "", err
	}
	source, dir := filepath.Join(work, "source"), filepath.Join(work, "tools")
	if err := os.CopyFS(source, os.DirFS(from)); err != nil {
		return "", fmt.Errorf("copy the module %s: %w", i.Module, err)
	}
	err = i.put(tools, source)
	for _, name := range []string{"go.mod", "go.sum"} {
		err = errors.Join(err, build.CopyFile(filepath.Join(dir, name), filepath.Join(tools, name), 0o644))
	}
	if err != nil {
		return "", fmt.Errorf("put other files into the module %s: %w", i.Module, err)
	}
	local, err := localModules(ctx, tools)
	if err != nil {
		return "", err
	}
	args := []string{"mod", "edit"}
	for _, module := range slices.Sorted(maps.Keys(local)) {
		args = append(args, "-replace="+module+"="+filepath.Join(tools, filepath.FromSlash(local[module])))
	}
	args = append(args, "-replace="+i.Module+"=../source") // last, so that it counts
	edit := exec.CommandContext(ctx, "go", args...)
	edit.Dir = dir
	if out, err := edit.CombinedOutput(); err != nil {
		return "", fmt.Errorf("put the copy of %s in its place: %w: %s", i.Module, err, out)
	}
	return dir, nil
}

func (i *Instead) put(tools, source string) error {
	for link, target := range i.Links {
		if err := build.CopyFile(filepath.Join(source, filepath.FromSlash(link)), filepath.Join(source, filepath.FromSlash(target)), 0o644); err != nil {
			return err
		}
	}
	if i.Files == "" {
		return nil
	}
	files := filepath.Join(tools, filepath.FromSlash(i.Files))
	return filepath.WalkDir(files, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(files, path)
		if err != nil {
			return err
		}
		to := filepath.Join(source, name)
		if err := os.Remove(to); err != nil {
			return err
		}
		return build.CopyFile(to, path, 0o644)
	})
}

// ModuleDir is where the Go module cache has the module that a tools module
// pins, fetched if need be.
func ModuleDir(ctx context.Context, tools, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = tools
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &found); found.Error != "" {
		err = errors.New(found.Error)
	} else {
		err = errors.Join(err, jsonErr)
	}
	if err != nil {
		return "", fmt.Errorf("fetch the module %s: %w", module, err)
	}
	return found.Dir, nil
}
