package incontainer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// list are the deployments whose state is in the bucket or, if the state is not in a bucket, in the
// volumes below dir. Removed deployments, of which only records are left, are not among them.
func (s *State) list(ctx context.Context, dir string) ([]contract.DeploymentSummary, error) {
	names, err := s.names(ctx, dir)
	if err != nil {
		return nil, err
	}
	out := []contract.DeploymentSummary{}
	for _, name := range names {
		listed, err := s.listed(ctx, name, filepath.Join(dir, name))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil { // the others can be listed all the same
			listed = &contract.DeploymentSummary{Deployment: name, Problem: err.Error()}
		}
		if listed != nil {
			out = append(out, *listed)
		}
	}
	return out, nil
}

// names are those of the deployments in the bucket or in the volumes below dir, sorted.
func (s *State) names(ctx context.Context, dir string) ([]string, error) {
	if !s.backend.Remote() {
		return entries(dir)
	}
	keys, err := s.store.List(ctx, "")
	var names []string
	for _, key := range keys {
		if name, _, below := strings.Cut(key, "/"); below && config.IsName(name) {
			names = append(names, name)
		}
	}
	return slices.Compact(names), err
}

// entries are the names in a directory that a deployment can have, sorted.
func entries(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := []string{}
	for _, e := range all {
		if config.IsName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// listed is a deployment whose state is in the bucket or in volume; nil if none is installed.
func (s *State) listed(ctx context.Context, name, volume string) (out *contract.DeploymentSummary, err error) {
	one := &State{backend: s.backend, errw: io.Discard}
	one.backend.Volume = volume
	if s.backend.Remote() {
		one.store, err = s.store.Sub(name)
	} else if one.store, err = one.backend.Open(ctx); err == nil {
		defer func(s *store.Store) { err = errors.Join(err, s.Close()) }(one.store)
	}
	if err != nil {
		return nil, err
	}
	identity, err := state.Identity(ctx, one.store)
	if err != nil || identity == nil {
		return nil, err
	}
	stored, err := one.stored(ctx)
	if err != nil {
		return nil, err
	}
	summary := contract.SummaryOf(name, identity.Created, stored, s.backend.Remote())
	return &summary, nil
}
