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

	"golang.org/x/tools/txtar"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// insteadFile, beside the go.mod of a tools module, has the files that replace those of a module at
// the same paths.
const insteadFile = "instead.txtar"

// Instead is a module that a command is built from, with other files than it is published
// with: those of insteadFile. Go takes no file of its module cache to be another one (-overlay), so
// that it is built from a copy.
type Instead struct {
	Module string `json:"module"` // path; the tools module pins its version
	// Links are files that the module's repository has as symbolic links, which no module can
	// have: what they lead to, by path in the module.
	Links map[string]string `json:"links"`
}

// inputs are what a build depends on, besides the files of the tools module.
func (i *Instead) inputs() []string {
	all := []string{i.Module}
	for _, link := range slices.Sorted(maps.Keys(i.Links)) {
		all = append(all, link, i.Links[link])
	}
	return all
}

// prepare copies the module with the other files into the folder work, and beside it the tools
// module, which takes the copy: it gives the folder of the latter. A program names the folders of
// such modules, so these paths are relative: every checkout builds the same bytes. A file that takes
// the place of none is an error, as is a link where the module has a file.
func (i *Instead) prepare(ctx context.Context, tools, work string) (string, error) {
	from, err := ModuleDir(ctx, tools, i.Module)
	if err != nil {
		return "", err
	}
	source, dir := filepath.Join(work, "source"), filepath.Join(work, "tools")
	if err := errors.Join(os.CopyFS(source, os.DirFS(from)), os.CopyFS(dir, os.DirFS(tools))); err != nil {
		return "", fmt.Errorf("copy the module %s: %w", i.Module, err)
	}
	if err := i.put(tools, source); err != nil {
		return "", fmt.Errorf("put other files into the module %s: %w", i.Module, err)
	}
	edit := exec.CommandContext(ctx, "go", "mod", "edit", "-replace="+i.Module+"=../source")
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
	files, err := txtar.ParseFile(filepath.Join(tools, insteadFile))
	if errors.Is(err, fs.ErrNotExist) && len(i.Links) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files.Files {
		to := filepath.Join(source, filepath.FromSlash(f.Name))
		if err := errors.Join(os.Remove(to), os.WriteFile(to, f.Data, 0o644)); err != nil {
			return err
		}
	}
	return nil
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
