package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/secret"
	"github.com/slipway-sh/slipway/stages/internal/nodedata"
)

// ClusterLost reports whether the volume of the cluster is empty though the state has the access
// to it, which goes with what a destroy removes (ForgetCluster). It is not, where the volume is
// not mounted.
func (p Place) ClusterLost(ctx context.Context, s *store.Store) (bool, error) {
	if p.Node == "" {
		return false, nil
	}
	if empty, err := nodedata.Empty(p.Node); err != nil || !empty {
		if err != nil {
			err = fmt.Errorf("look for the cluster: %w", err)
		}
		return false, err
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
