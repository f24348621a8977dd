package infrastructure

import (
	"context"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// hello greets the cluster.
func hello(_ context.Context, env *step.Env, _ contract.Nothing) (contract.Nothing, error) {
	env.Progress("hello, %s", env.Deployment)
	return contract.Nothing{}, nil
}
