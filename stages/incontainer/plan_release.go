package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/preview"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// nameOf is the name of the release that is installed in a version, as the last run says that
// had it; empty if none says so.
func (s *State) nameOf(ctx context.Context, version string) (string, error) {
	if version == "" {
		return "", nil
	}
	runs, err := state.Runs(ctx, s.store)
	if err != nil {
		return "", err
	}
	for _, id := range slices.Backward(runs) {
		data, err := state.File(ctx, s.store, id, report.RecordFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("read run %s: %w", id, err)
		}
		if record, err := report.Decode(data); err == nil && record.Platform.Version == version { // or it is damaged, and does not count
			return record.Platform.Name, nil
		}
	}
	return "", nil
}

// components fills in which components the release would add to those that are installed, or
// remove.
func (s *State) components(ctx context.Context, is stages.Held, out *contract.Plan) error {
	if out.Release.From == "" { // all of them
		return nil
	}
	was, why := s.installed(ctx, is.Release, out.Release.Digest)
	if was == nil {
		out.Unknown = append(out.Unknown, contract.PlannedUnknown{What: "components", Why: why})
		return nil
	}
	var err error
	out.Components, err = stages.ComponentsBetween(*was, is)
	return err
}

// installed is the release that is installed, as the state keeps it for backups; wanted is
// the one of a digest. Nil: it is not known, and why.
func (s *State) installed(ctx context.Context, wanted *platform.Release, digest string) (*stages.Held, string) {
	const none = "the deployment's state has no copy of the release that is installed"
	if keys, err := s.store.List(ctx, backup.InstalledDir); err != nil || len(keys) == 0 {
		return nil, none
	}
	repo, err := backup.Open(ctx, s.place, s.store)
	if err != nil {
		return nil, none + " that can be read: " + err.Error()
	}
	kept, err := repo.Installed(ctx)
	if err != nil || kept == nil {
		return nil, none + " that can be read"
	}
	was := &stages.Held{Release: wanted}
	if kept.Digest != digest {
		archive, err := repo.Archive(ctx, backup.InstalledKey(kept.Digest), kept.Release)
		if err == nil {
			was.Release, err = backup.Release(archive)
		}
		if err != nil {
			return nil, none + " that can be read: " + err.Error()
		}
	}
	if was.Config, err = config.Load(kept.Config, config.Options{File: "the configuration of release " + kept.Version}); err != nil {
		return nil, err.Error()
	}
	return was, ""
}

// differences are those between two configurations, JSON or YAML.
func differences(before, after []byte) ([]contract.Difference, error) {
	var was, is map[string]any
	if err := errors.Join(yaml.Unmarshal(before, &was), yaml.Unmarshal(after, &is)); err != nil {
		return nil, fmt.Errorf("compare the configuration with that before: %w", err)
	}
	return preview.Diff(was, is, func(_ string, v any) string { return preview.Shown(v) }), nil
}

// later are the upgrades after the one with a configuration, each with what its release
// changes in that of the one before.
func later(cfg *config.Config, all []contract.LaterUpgrade) ([]contract.PlannedUpgrade, error) {
	var out []contract.PlannedUpgrade
	before := json.RawMessage(cfg.Canonical())
	for _, u := range all {
		var err error
		if u.Configuration, err = differences(before, u.Config); err != nil {
			return nil, err
		}
		out, before = append(out, u.PlannedUpgrade), u.Config
	}
	return out, nil
}
