package main

import (
	"context"
	"io"

	"k8s.io/klog/v2"

	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	localsteps "github.com/slipway-sh/slipway/providers/local/steps"
	"github.com/slipway-sh/slipway/stages/diagnosis"
	"github.com/slipway-sh/slipway/stages/infrastructure"
	"github.com/slipway-sh/slipway/stages/orchestrator"
	"github.com/slipway-sh/slipway/stages/postorchestrator"
	"github.com/slipway-sh/slipway/stages/preorchestrator"
	"github.com/slipway-sh/slipway/stages/step"
)

// providerRegistry holds the providers of this program.
func providerRegistry() *providers.Registry { return providers.NewRegistry(local.Provider{}) }

// stepRegistry holds the steps of this program.
func stepRegistry() *step.Registry {
	var reg step.Registry
	infrastructure.Register(&reg)
	localsteps.Register(&reg)
	preorchestrator.Register(&reg)
	orchestrator.Register(&reg)
	postorchestrator.Register(&reg)
	diagnosis.Register(&reg)
	// client-go tells of every connection that it could not make; the steps retry
	// and say themselves what they wait for.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	return &reg
}

// runStep is `slipway step`: one step, in its container.
func runStep(args []string, out, errw io.Writer) int {
	return step.Main(context.Background(), stepRegistry(), args, out, errw) //nolint:forbidigo // the composition root
}

// toolVersions are the versions that the toolchain must have, by name.
func toolVersions(pins *lock.Lock) map[string]string {
	tools := map[string]string{}
	for _, t := range pins.Tools {
		tools[t.Name] = t.Version
	}
	return tools
}
