//go:build unix && !solaris && !aix

package acquire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile is the name of a file in bundle.AddedDir that is no leftover: none on this
// system, which locks the directory itself.
const lockFile = ""

// lockBundle waits until no other process changes the bundle in dir. The lock ends with
// the process at the latest.
func lockBundle(ctx context.Context, dir string, waiting func()) (release func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the bundle: %w", err)
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil // which unlocks it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the bundle: %w", err), d.Close())
		}
		if !told && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), d.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// syncDir brings the names in a directory to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
