package orchestrator

import (
	"context"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/step"
)

// runPrune removes components that were installed and are not any more, as a destroy
// does, but for what data goes with. What Argo CD installs is Argo CD's to remove.
func runPrune(ctx context.Context, env *step.Env, in contract.PruneInput) (contract.Pruned, error) {
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	if err != nil {
		return contract.Pruned{}, err
	}
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return contract.Pruned{}, err
	}
	record, _, err := removal.Read(ctx, c)
	if err != nil {
		return contract.Pruned{}, err
	}
	remover := &removal.Remover{
		Client: c, Kubeconfig: env.Kubeconfig, Deployment: env.Deployment, Rules: record.Remove, Log: env.Logger, Progress: env.Progress,
	}
	var out contract.Pruned
	out.Components, out.Objects, err = remover.Dropped(ctx, record.Components, in.Components)
	out.Stripped = remover.Stripped
	if err != nil {
		return out, err
	}
	if len(out.Components) > 0 {
		env.Progress("removed %s: %d objects", strings.Join(out.Components, ", "), len(out.Objects))
	}
	return out, removal.RecordOf(r).Write(ctx, c, env.Deployment)
}
