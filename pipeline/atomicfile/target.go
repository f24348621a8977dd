package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrSpecial is the error of a path that leads to something other than a regular file: it is never
// replaced.
var ErrSpecial = errors.New("give a regular file, or a path at which there is nothing")

// special is ErrSpecial, and says what is at the path.
func special(path string, mode fs.FileMode) error {
	what := "a special file"
	switch {
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeSymlink != 0:
		what = "a link that leads nowhere"
	}
	return fmt.Errorf("%s is %s: %w", path, what, ErrSpecial)
}

// Target returns the regular file at path, or the target of a link there; path if there is
// nothing. Anything else there is ErrSpecial.
func Target(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Lstat(path); err == nil {
			return "", special(path, info.Mode())
		}
		return path, nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", special(path, info.Mode())
	}
	return filepath.EvalSymlinks(path)
}

// IsStream reports whether what is written to path is not kept there: Write passes it on to a
// character device, to a pipe, or to this process's standard output or error.
func IsStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 || standard(info) != nil)
}

// standard is the standard stream of this process that info describes; nil if it is another file.
func standard(info fs.FileInfo) *os.File {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if own, err := f.Stat(); err == nil && os.SameFile(own, info) {
			return f
		}
	}
	return nil
}

// pass writes data to what IsStream reports.
func pass(path string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f := standard(info) // which stays open
	if f != nil {
		_, err = f.Write(data)
		return err
	}
	if f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
