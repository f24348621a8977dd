package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
)

// before fills in what is installed, and how the configuration and the components differ from that.
// It returns what Terraform said last, if it is known.
func (s *State) before(ctx context.Context, in contract.Inputs, out *contract.Plan) (*contract.Infrastructure, error) {
	runtime, err := s.runtime(ctx)
	if err != nil {
		return nil, err
	}
	said := runtime.Infrastructure
	out.Release.From, out.Basis.Installed = runtime.Platform, runtime.Platform
	repo, is, why := s.kept(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case in.Release == nil:
		if is != nil && is.Version == out.Release.From {
			out.Release.Name = is.Platform
		}
		return said, nil
	case is != nil:
		if out.Configuration, err = differences(is.Config, in.Config.Canonical()); err != nil {
			return nil, err
		}
		out.Changes, why = components(ctx, repo, is, in.Release, in.Config, out.Release.Digest)
	}
	if why != nil && out.Release.From != "" {
		out.Unknown = append(out.Unknown, contract.PlannedUnknown{What: "components", Why: why.Error()})
	}
	return said, nil
}

// errNoCopy is why it is not known what is installed.
var errNoCopy = errors.New("the deployment's state has no copy of the release that is installed")

// kept is the release that is installed, as the state keeps it for backups.
func (s *State) kept(ctx context.Context) (*backup.Repository, *contract.Installed, error) {
	if keys, err := s.store.List(ctx, backup.InstalledDir); err != nil || len(keys) == 0 {
		return nil, nil, errNoCopy
	}
	repo, err := backup.Open(ctx, s.backend, s.store)
	if err != nil {
		return nil, nil, fmt.Errorf("%w that can be read: %w", errNoCopy, err)
	}
	is, err := repo.Installed(ctx)
	if err != nil || is == nil {
		return nil, nil, fmt.Errorf("%w that can be read", errNoCopy)
	}
	return repo, is, nil
}

// components are the changes from what is installed to a release of that digest with a configuration.
func components(ctx context.Context, repo *backup.Repository, is *contract.Installed, release *platform.Release, cfg *config.Config, digest string) ([]contract.PlannedChange, error) {
	former := release
	if is.Digest != digest {
		archive, err := repo.Archive(ctx, backup.InstalledKey(is.Digest), is.Release)
		if err == nil {
			former, err = backup.Release(archive)
		}
		if err != nil {
			return nil, fmt.Errorf("%w that can be read: %w", errNoCopy, err)
		}
	}
	with, err := config.Load(is.Config, config.Options{File: "the configuration of release " + is.Version})
	if err != nil {
		return nil, err
	}
	return componentsBetween(former, with, release, cfg)
}

// componentsBetween are the components that a release adds to a former one and removes from it.
func componentsBetween(former *platform.Release, with *config.Config, release *platform.Release, cfg *config.Config) ([]contract.PlannedChange, error) {
	was, err := enabled(former, with)
	if err != nil {
		return nil, err
	}
	is, err := enabled(release, cfg)
	var out []contract.PlannedChange
	lacks := func(action string, all, others []platform.Component) {
		for _, c := range all {
			if !slices.ContainsFunc(others, func(o platform.Component) bool { return o.Name == c.Name }) {
				out = append(out, contract.PlannedChange{Of: contract.PlanComponents, Action: action, Name: c.Name, Note: string(c.Kind)})
			}
		}
	}
	lacks(contract.PlanAdd, is, was)
	lacks(contract.PlanRemove, was, is)
	return out, err
}

// enabled are the components of a release that a configuration does not disable.
func enabled(r *platform.Release, cfg *config.Config) ([]platform.Component, error) {
	if cfg.Git.URL != "" {
		r = r.ForRepository()
	}
	off, err := r.Off(cfg.Choices())
	return slices.DeleteFunc(slices.Clone(r.Components), func(c platform.Component) bool { return slices.Contains(off, c.Name) }), err
}

func differences(before, after []byte) ([]contract.Difference, error) {
	var was, is map[string]any
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &is)); err != nil {
		return nil, fmt.Errorf("compare the configuration with that before: %w", err)
	}
	return diffOf(was, is, asText), nil
}
