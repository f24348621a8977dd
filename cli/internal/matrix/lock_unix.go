//go:build unix && !solaris && !aix

package matrix

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock of a file, which is made. It ends with the process at the latest.
func lockFile(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// stale is what to do about a lock that a process has left: none is left on this system.
func stale(string) string { return "" }
