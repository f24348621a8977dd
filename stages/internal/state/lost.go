package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/secret"
)

// ClusterLost reports whether the volume of the cluster is empty though the state has the access
// to it, which goes with what a destroy removes (ForgetCluster). It is not, where the volume is
// not mounted.
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
	return p.HasKubeconfig(ctx, s)
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
