//go:build !unix || solaris || aix

package matrix

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile makes a file, which is the lock, and which a process that is killed leaves.
func lockFile(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, errHeld
	case err != nil:
		return nil, err
	}
	return func() { _ = errors.Join(f.Close(), os.Remove(file)) }, nil
}

// stale is what to do about a lock that a process has left.
func stale(file string) string { return "; if none runs, remove " + file }
