package orchestrator

import (
	"context"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/diagnosis"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// runStatus reads all Applications as they are now, with the cause for each unhealthy one.
// It does not wait.
func runStatus(ctx context.Context, env *step.Env, _ contract.Nothing) (contract.Apps, error) {
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return contract.Apps{}, err
	}
	all, err := list(ctx, c)
	if err != nil {
		return contract.Apps{}, err
	}
	out := contract.Apps{Apps: []contract.App{}}
	var facts *diagnosis.Facts // read when they are needed
	for _, a := range all {
		if isRoot(a) {
			continue
		}
		app := appOf(a)
		if a.Waiting("") != "" {
			if facts == nil {
				facts = gatherFacts(ctx, c, env, all, "")
			}
			app.Cause, _ = facts.App(a.Name)
		}
		out.Apps = append(out.Apps, app)
	}
	sortApps(out.Apps)
	return out, nil
}

func isRoot(a argo.Application) bool {
	return a.Name == RootApp && kube.DeploymentOf(a.Labels) != ""
}
