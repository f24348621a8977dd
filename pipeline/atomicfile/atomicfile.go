// Package atomicfile replaces files atomically: a reader sees either the old content
// or the new one, even if the writer is killed, and what has been written survives a
// crash of the machine.
package atomicfile

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/slipway-sh/slipway/fault"
)

// CodeUnwritten: the result of a command cannot be written, or something else is in its place.
const CodeUnwritten fault.Code = "RUN-008"

// Unfinished is the prefix of the names of files that a writer has not finished.
const Unfinished = ".tmp-"

// Write creates or replaces the file at path, or the target of a link there. Its directory must
// exist. To a stream (see IsStream) it writes data and replaces nothing. Anything else that is no
// regular file is ErrSpecial.
func Write(path string, data []byte, mode fs.FileMode) error {
	if IsStream(path) {
		return pass(path, data)
	}
	path, err := Target(path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	d, name := Dir{Root: root}, filepath.Base(path)
	err = d.place(name, data, mode, func(tmp string) error { return d.rename(tmp, name) })
	return errors.Join(err, root.Close())
}

// Overwrite is Write that leaves a file that exists its mode.
func Overwrite(path string, data []byte, newFileMode fs.FileMode) error {
	if info, err := os.Stat(path); err == nil {
		newFileMode = info.Mode().Perm()
	}
	return Write(path, data, newFileMode)
}

// Dir is a directory. Names are relative to it, with slashes. Its methods may be
// called by any number of goroutines and processes at the same time.
type Dir struct {
	Root *os.Root
	Sync func(*os.File) error // nil is (*os.File).Sync
}

// Replace creates or replaces a regular file, unless ctx ends before the file is renamed. Its
// directory must exist. Anything else of that name, also a link, is ErrSpecial.
func (d Dir) Replace(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	return d.place(name, data, mode, func(tmp string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return d.rename(tmp, name)
	})
}

// rename puts tmp in the place of a regular file, or of nothing.
func (d Dir) rename(tmp, name string) error {
	if info, err := d.Root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return special(name, info.Mode())
	}
	return d.Root.Rename(tmp, name)
}

// Create is Replace for a file that does not exist yet: of several callers only one
// succeeds, and the others get fs.ErrExist.
func (d Dir) Create(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	return d.place(name, data, mode, func(tmp string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errors.Join(d.Root.Link(tmp, name), d.discard(tmp))
	})
}

// place writes a temporary file beside name, then calls put to move it there.
func (d Dir) place(name string, data []byte, mode fs.FileMode, put func(tmp string) error) error {
	dir := path.Dir(name)
	tmp := path.Join(dir, Unfinished+rand.Text())
	err := d.write(tmp, data, mode)
	if err == nil {
		err = put(tmp)
	}
	if err != nil {
		return errors.Join(err, d.discard(tmp))
	}
	return d.syncDir(dir)
}

// write creates a file and syncs its content.
func (d Dir) write(name string, data []byte, mode fs.FileMode) error {
	f, err := d.Root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = d.sync(f)
	}
	return errors.Join(err, f.Close())
}

// Remove removes a file if it exists.
func (d Dir) Remove(name string) error {
	if err := d.discard(name); err != nil {
		return err
	}
	return d.syncDir(path.Dir(name))
}

func (d Dir) discard(name string) error {
	if err := d.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MakeAll creates a directory and its parents.
func (d Dir) MakeAll(dir string) error {
	if info, err := d.Root.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := d.Root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if err := d.syncDir(path.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

func (d Dir) sync(f *os.File) error {
	if d.Sync == nil {
		return f.Sync()
	}
	return d.Sync(f)
}

func (d Dir) syncDir(dir string) error {
	if runtime.GOOS == "windows" { // which cannot
		return nil
	}
	f, err := d.Root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

// SyncDir brings the names in a directory to disk.
func SyncDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(Dir{Root: root}.syncDir("."), root.Close())
}
