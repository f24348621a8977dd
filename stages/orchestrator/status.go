package orchestrator

import (
	"context"

	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/argo"
	"github.com/slipway-sh/slipway/stages/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// runStatus reads all Applications as they are now, with the cause for each one
// that is not well. It waits for nothing.
func runStatus(ctx context.Context, env *step.Env, _ stages.PlatformInput) (stages.Apps, error) {
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return stages.Apps{}, err
	}
	all, err := list(ctx, c)
	if err != nil {
		return stages.Apps{}, err
	}
	w := &waiter{client: c, env: env}
	out := stages.Apps{Apps: []stages.App{}}
	for _, a := range all {
		app := appOf(a)
		if a.Waiting("") != "" {
			app.Cause, _ = w.cause(ctx, a)
		}
		if isRoot(a) {
			continue
		}
		out.Apps = append(out.Apps, app)
	}
	sortApps(out.Apps)
	return out, nil
}

func isRoot(a argo.Application) bool {
	return a.Name == RootApp && a.Namespace == argo.Namespace
}
