package build

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// CopyFile copies the file from to the file to, which does not exist yet, and
// makes the folders above it.
func CopyFile(to, from string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// Link makes the symbolic link name lead to target, in one step.
func Link(name, target string) error {
	fresh := name + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, name)
}
