package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// openRelease finds the release of an install. After an upgrade, the configuration may still name
// the older release; the install then works with the installed one, and says so.
func (o *installOptions) openRelease(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
	f := &o.deployment
	kept, err := o.keeps(c.Config, func() (string, error) {
		has, err := conductor.New(*c)
		if err != nil {
			return "", err
		}
		return has.Installed(ctx)
	})
	if err != nil {
		return err
	}
	names, unsaid := c.Config.Platform.Release, c.Config.WrittenFor() == ""
	f.Release.Choose(c.Config, kept)
	if err := f.Release.Open(ctx, c.Config, f.Source.Path, from.Anew, c); err != nil || kept == "" {
		return err
	}
	if unsaid {
		fmt.Fprintf(io.Err, "slipway: keeping the installed release %s, although the default is the older release %s\n", kept, names)
	} else {
		fmt.Fprintf(io.Err, "slipway: keeping the installed release %s, although %s names the older release %s\n", kept, f.Source.FileName(), names)
	}
	u := upgradeOptions{install: *o, written: names}
	return u.migrate(io, c, unsaid)
}

// keeps is the version of the installed release if the configuration names an older one; empty
// otherwise. This program has the releases of the reference platform only: for another platform,
// the run rejects an older release (UPG-001).
func (o *installOptions) keeps(cfg *config.Config, installed func() (string, error)) (string, error) {
	newer := func(version string) bool { return platform.Older(cfg.Platform.Release, version) }
	if !o.deployment.Release.IsReference(cfg) || !slices.ContainsFunc(platforms.Versions(), newer) {
		return "", nil
	}
	version, err := installed()
	switch {
	case err != nil && fault.ClassOf(err) == fault.Usage: // no release is installed, or its cluster is lost
		return "", nil
	case err != nil:
		return "", store.Preflight(err)
	case !newer(version) || !slices.Contains(platforms.Versions(), version):
		return "", nil
	}
	return version, nil
}
