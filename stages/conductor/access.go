package conductor

import (
	"context"
	"errors"
	"sync"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/providers"
)

// clusterAccess finds the access to an existing cluster. The deployment's state
// never holds it, so that each command uses what the configuration refers to now.
type clusterAccess struct {
	to   providers.Access
	find func(context.Context, providers.Access) (*dagger.Secret, error) // see Options.Access

	mu    sync.Mutex
	found *dagger.Secret
}

// secret is a kubeconfig; nil where the cluster is Slipway's own.
func (a *clusterAccess) secret(ctx context.Context) (*dagger.Secret, error) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found != nil {
		return a.found, nil
	}
	if a.find == nil {
		return nil, errors.New("the access to the cluster is not readable here")
	}
	found, err := a.find(ctx, a.to)
	if err == nil {
		a.found = found
	}
	return found, err
}
