//go:build unix && !solaris && !aix

package state

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// flock opens a file and takes the system's lock on it, which the system gives up when the last process
// that has it has ended, however it ends. The error is errBusy if somebody else has the lock.
func flock(path string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		err = errBusy
	}
	return nil, errors.Join(err, f.Close())
}

// alone locks a file that is there, if nobody else does.
func alone(path string) (*os.File, error) { return flock(path, 0, syscall.LOCK_EX) }

// shared locks a file together with others, and makes it if it is not there. Programs that
// this process starts inherit the lock, and keep it if they outlive this process.
func shared(path string) (*os.File, error) {
	f, err := flock(path, os.O_CREATE, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
