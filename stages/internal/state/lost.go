package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// nodeMark is in the node's volume from its first start on (containers/node, settings.pki).
const nodeMark = "pki/ca.crt"

// ClusterLost reports whether the volume of the cluster is empty though this machine has the
// access to it, and no destroy has emptied it. It is not, where the volume is not mounted.
func (p Place) ClusterLost(ctx context.Context, s *store.Store) (bool, error) {
	if p.Node == "" {
		return false, nil
	}
	for path, want := range map[string]bool{p.kubeconfigFile(): true, filepath.Join(p.Node, filepath.FromSlash(nodeMark)): false} {
		_, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("look for the cluster: %w", err)
		}
		if (err == nil) != want {
			return false, nil
		}
	}
	run, err := Latest(ctx, s)
	if errors.Is(err, ErrNoRun) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	text, err := File(ctx, s, run, report.RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	record, err := report.Decode(text)
	return err != nil || record.Workflow != config.Destroy, nil // a record that cannot be read is of no destroy that ended here
}
