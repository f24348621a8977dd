package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// clusterFile says which cluster the deployment is on, where that is not Slipway's own.
const clusterFile = "cluster.json"

// Cluster tells a cluster that is there already from others. It holds no credential.
type Cluster struct {
	UID    string `json:"uid"`    // of its namespace kube-system
	Server string `json:"server"` // URL at which it was reached first
}

// ClusterOf is the cluster that the deployment is on, where that is not Slipway's own; nil
// while nothing was installed there.
func ClusterOf(ctx context.Context, s *store.Store) (*Cluster, error) {
	data, err := s.Get(ctx, clusterFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c Cluster
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("decode %s: %w", clusterFile, err)
	}
	return &c, nil
}

// PutCluster notes which cluster the deployment is on.
func PutCluster(ctx context.Context, s *store.Store, c Cluster) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return s.Put(ctx, clusterFile, data)
}
