package state

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// clusters says which cluster the deployment is on, where that is not Slipway's own.
func clusters() store.Versions {
	return store.Versions{Prefix: "cluster/", Suffix: ".json"}
}

// Cluster tells an existing cluster from others. It holds no credential.
type Cluster struct {
	UID    string `json:"uid"`    // of its namespace kube-system
	Server string `json:"server"` // URL at which it was reached first
}

// ClusterOf is the cluster that the deployment is on, where that is not Slipway's own; nil
// while nothing was installed there.
func ClusterOf(ctx context.Context, s *store.Store) (*Cluster, error) {
	return newest(ctx, s, clusters(), func(c *Cluster) error {
		if c.UID == "" {
			return errors.New("it has no uid")
		}
		return nil
	})
}

// PutCluster notes which cluster the deployment is on, for who has the lock of a generation.
func PutCluster(ctx context.Context, s *store.Store, generation int64, c Cluster) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return clusters().Put(ctx, s, generation, data)
}
