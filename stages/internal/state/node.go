package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/nodedata"
)

// codeNodeRuns: the volume of the cluster's node is in use.
const codeNodeRuns fault.Code = "DEP-012"

// nodeLimit is how long a node that is just ending may take to let go of its volume.
const nodeLimit = 10 * time.Second

// NodeAlone takes the volume of the cluster's node for this process alone, as the node does
// (containers/node, lock.go), until release is called. A node that runs is a fault.
func (p Place) NodeAlone(ctx context.Context) (release func(), err error) {
	path := filepath.Join(p.Node, nodedata.LockFile)
	for begun := time.Now(); ; {
		f, err := flockedThere(path)
		switch {
		case err == nil:
			return closed(f), nil
		case !errors.Is(err, errBusy):
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
		case <-time.After(alivePause):
		}
	}
}

// flockedThere is a file that is locked for this process alone. It is made if it is not there;
// a wipe removes it, and a lock on a file that is not there excludes nobody.
func flockedThere(path string) (*os.File, error) {
	for {
		if err := makeFile(path); err != nil {
			return nil, err
		}
		f, err := alone(path)
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
