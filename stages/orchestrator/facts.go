package orchestrator

import (
	"context"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/diagnosis"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// gatherFacts reads the state of the cluster behind apps, first of all behind the one called
// name ("" for none in particular). It has its own time limit and works even after ctx has
// ended. What cannot be read is only logged.
func gatherFacts(ctx context.Context, client *kube.Client, env *step.Env, apps []argo.Application, name string) *diagnosis.Facts {
	facts := diagnosis.Gather(context.WithoutCancel(ctx), client, diagnosis.Scope{Apps: apps, App: name, Clean: env.Clean, Deployment: env.Deployment, Hide: env.Redact})
	for _, gap := range facts.Gaps {
		env.Logger.Info("look for the cause", "not looked at", gap)
	}
	return facts
}
