//go:build !unix || solaris || aix

package acquire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// lockFile is the name of the lock in bundle.AddedDir.
const lockFile = ".lock"

// lockBundle refuses to change the bundle in dir while another process does.
func lockBundle(_ context.Context, dir string, _ func()) (release func(), err error) {
	added := filepath.Join(dir, filepath.FromSlash(bundle.AddedDir))
	if err := os.MkdirAll(added, 0o755); err != nil {
		return nil, fmt.Errorf("lock the bundle: %w", err)
	}
	name := filepath.Join(added, lockFile)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, &fault.Fault{Code: CodeWrite, Class: fault.Preflight, Op: "lock the bundle", Err: errors.New("another slipway bundle add has the lock"),
			Fix: "wait for it; if none runs, remove " + name}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the bundle: %w", err)
	}
	return func() { _ = errors.Join(f.Close(), os.Remove(name)) }, nil
}

// syncDir does nothing on this system, which does not do it for directories.
func syncDir(string) error { return nil }
