package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/secret"
)

// ClusterLost reports whether the volume of the cluster, which this engine has had, is empty
// though the state has the access to it, which goes with what a destroy removes (ForgetCluster).
// It is not, where the volume is not mounted.
func (p Place) ClusterLost(ctx context.Context, s *store.Store) (bool, error) {
	if p.Node == "" {
		return false, nil
	}
	// The node makes this file at its first start (containers/node, pki.go), and a wipe removes it last.
	if _, err := os.Lstat(filepath.Join(p.Node, "pki", "ca.crt")); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for the cluster: %w", err)
	}
	if _, known, err := p.HasKubeconfig(ctx, s); err != nil || !known {
		return false, err
	}
	claim, err := ClaimOf(ctx, s)
	if err != nil {
		return false, err
	}
	away, err := p.Away(ctx, s, claim)
	return err == nil && !away, err
}

// ForgetCluster removes the access to a cluster that was removed, whose volume would be missed
// otherwise: from the store, and from the volume where that is not the store.
func (p Place) ForgetCluster(ctx context.Context, w *Work) error {
	err := secret.Remove(ctx, w.Store, w.Generation, kubeconfig)
	if err == nil {
		err = w.Held(ctx)
	}
	if err == nil {
		err = os.Remove(p.kubeconfigFile())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the access to the cluster: %w", err)
	}
	return nil
}

// lastRun is the record of the last run; nil if there is none, or none that can be read.
func lastRun(ctx context.Context, s *store.Store) (*report.Run, error) {
	run, err := Latest(ctx, s)
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := File(ctx, s, run, report.RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if record, err := report.Decode(text); err == nil {
		return record, nil
	}
	return nil, nil // whoever asks for the run is told what is wrong with it
}
