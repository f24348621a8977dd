package postorchestrator

import (
	"context"
	"encoding/json"
	"os"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/step"
)

// keep keeps the release that is installed, and its configuration, in the deployment's state,
// for the backup before the next upgrade.
func keep(ctx context.Context, env *step.Env, r *platform.Release, config json.RawMessage) error {
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	repo, err := backup.Open(ctx, env.Place, s)
	if err != nil {
		return err
	}
	files := os.DirFS(env.PlatformDir)
	want := contract.Installed{Platform: r.Name, Version: r.Version, Config: config}
	if want.Digest, err = platform.Digest(files); err != nil {
		return err
	}
	kept, err := repo.Installed(ctx)
	if err != nil || backup.Holds(kept, want) {
		return err
	}
	if env.Plan != nil {
		env.Plan.Change("keep release %s for a backup", r.Version)
		return nil
	}
	return repo.KeepInstalled(ctx, env.Generation(), kept, want, files)
}
