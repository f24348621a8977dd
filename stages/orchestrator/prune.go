package orchestrator

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/step"
)

// runPrune removes, as a destroy does, components that were installed and that the release has no
// more, but for what data goes with. What was made before components stays until a destroy. What
// Argo CD installs is Argo CD's to remove; it is told to where no app is left.
func runPrune(ctx context.Context, env *step.Env, in contract.PruneInput) (contract.Pruned, error) {
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	if err != nil {
		return contract.Pruned{}, err
	}
	c, err := env.Connect()
	if err != nil {
		return contract.Pruned{}, err
	}
	record, _, err := removal.Read(ctx, c, env.Deployment)
	if err != nil {
		return contract.Pruned{}, err
	}
	remover := &removal.Remover{
		Client: c, Deployment: env.Deployment, Argo: record.Argo, Rules: record.Remove, Log: env.Logger, Progress: env.Progress,
	}
	var out contract.Pruned
	take := func(objects, kept []string, err error) error {
		out.Objects, out.Kept, out.Stripped = append(out.Objects, objects...), append(out.Kept, kept...), remover.Stripped
		return err
	}
	if !in.Apps { // while Argo CD is there
		if err := take(withoutApps(ctx, env, c, record.Argo)); err != nil {
			return out, err
		}
	}
	dropped, objects, err := remover.Dropped(ctx, record.Components, in.Components, removal.Prerequisites(r))
	out.Components = dropped
	if err := take(objects, nil, err); err != nil {
		return out, err
	}
	if len(out.Components) > 0 {
		env.Progress("removed %s", strings.Join(out.Components, ", "))
	}
	if len(out.Objects) > 0 {
		env.Progress("removed %d objects that the release no longer has", len(out.Objects))
	}
	for _, kept := range out.Kept {
		env.Progress("the release no longer has this, but it stays: %s", kept)
	}
	earlier := record.Argo
	record = removal.RecordOf(r)
	record.Argo = cmp.Or(record.Argo, earlier)
	return out, record.Write(ctx, c, env.Deployment)
}
