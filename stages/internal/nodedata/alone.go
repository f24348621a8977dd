package nodedata

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/flock"
)

// codeNodeRuns: the volume of the cluster's node is in use.
const codeNodeRuns fault.Code = "DEP-012"

// A node that is just ending may take nodeLimit to let go of its volume, of which it is asked
// after each nodePause.
const (
	nodeLimit = 10 * time.Second
	nodePause = 20 * time.Millisecond
)

// Alone takes a volume for this process alone, as the node does (containers/node, lock.go),
// until release is called. A node that runs is a fault.
func Alone(ctx context.Context, dir string) (release func(), err error) {
	path := filepath.Join(dir, lockFile)
	for begun := time.Now(); ; {
		f, err := lockThere(path)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // which ends the lock; nothing was written
		case !errors.Is(err, flock.ErrBusy):
			return nil, fmt.Errorf("lock the volume of the cluster: %w", err)
		case time.Since(begun) > nodeLimit:
			who, _ := os.ReadFile(path)
			return nil, &fault.Fault{
				Code: codeNodeRuns, Class: fault.Locked, Op: "take the volume of the cluster",
				Err: fmt.Errorf("the cluster runs: %s; waited %s", strings.TrimSpace(string(who)), nodeLimit),
				Fix: "stop it, then run the same command again: slipway cluster --stop",
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(nodePause):
		}
	}
}

// lockThere is a file that is locked for this process alone. It is made if it is not there;
// a wipe removes it, and a lock on a file that is not there excludes nobody.
func lockThere(path string) (*os.File, error) {
	for {
		if err := makeFile(path); err != nil {
			return nil, err
		}
		f, err := flock.Alone(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ours, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if theirs, err := os.Stat(path); err == nil && os.SameFile(ours, theirs) {
			return f, nil
		}
		_ = f.Close() // it is no lock
	}
}

func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
