package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// before fills in what is installed, and how the configuration and the components differ from that.
// It returns what Terraform said last, if it is known.
func (s *State) before(ctx context.Context, in contract.Inputs, out *contract.Plan) (*contract.Infrastructure, error) {
	var said *contract.Infrastructure
	runtime, err := state.Runtime(ctx, s.store)
	switch {
	case err == nil:
		out.Release.From, out.Basis.Installed = runtime.Platform, runtime.Platform
		said = runtime.Infrastructure
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, state.ErrDamaged):
		return nil, fmt.Errorf("read the runtime state: %w", err)
	}
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
		out.Changes, why = components(ctx, repo, is, stages.Held{Release: in.Release, Config: in.Config}, out.Release.Digest)
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
	repo, err := backup.Open(ctx, s.place, s.store)
	if err != nil {
		return nil, nil, fmt.Errorf("%w that can be read: %w", errNoCopy, err)
	}
	is, err := repo.Installed(ctx)
	if err != nil || is == nil {
		return nil, nil, fmt.Errorf("%w that can be read", errNoCopy)
	}
	return repo, is, nil
}

// components are those that wanted, of a digest, would add to what is installed, or remove.
func components(ctx context.Context, repo *backup.Repository, is *contract.Installed, wanted stages.Held, digest string) ([]contract.PlannedChange, error) {
	was := stages.Held{Release: wanted.Release}
	if is.Digest != digest {
		archive, err := repo.Archive(ctx, backup.InstalledKey(is.Digest), is.Release)
		if err == nil {
			was.Release, err = backup.Release(archive)
		}
		if err != nil {
			return nil, fmt.Errorf("%w that can be read: %w", errNoCopy, err)
		}
	}
	var err error
	if was.Config, err = config.Load(is.Config, config.Options{File: "the configuration of release " + is.Version}); err != nil {
		return nil, err
	}
	return stages.ComponentsBetween(was, wanted)
}

// differences are those between two configurations.
func differences(before, after []byte) ([]contract.Difference, error) {
	var was, is map[string]any
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &is)); err != nil {
		return nil, fmt.Errorf("compare the configuration with that before: %w", err)
	}
	return diffOf(was, is, asText), nil
}
