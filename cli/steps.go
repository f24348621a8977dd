package cli

import (
	"context"
	"io"

	"k8s.io/klog/v2"

	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/azblob"
	"github.com/slipway-sh/slipway/pipeline/store/gs"
	"github.com/slipway-sh/slipway/pipeline/store/s3"
	"github.com/slipway-sh/slipway/providers"
	localsteps "github.com/slipway-sh/slipway/providers/local/steps"
	"github.com/slipway-sh/slipway/providers/registry"
	"github.com/slipway-sh/slipway/stages/diagnosis"
	"github.com/slipway-sh/slipway/stages/infrastructure"
	"github.com/slipway-sh/slipway/stages/orchestrator"
	"github.com/slipway-sh/slipway/stages/postorchestrator"
	"github.com/slipway-sh/slipway/stages/preorchestrator"
	"github.com/slipway-sh/slipway/stages/step"
)

// providerRegistry holds the providers of this program.
func providerRegistry() *providers.Registry { return registry.All() }

// stores open the buckets of this program, by the scheme of their URLs.
func stores() map[string]store.Opener {
	return map[string]store.Opener{"s3": s3.Opener{}, "azblob": azblob.Opener{}, "gs": gs.Opener{}}
}

// stepRegistry holds the steps of this program.
func stepRegistry() *step.Registry {
	reg := step.Registry{Stores: stores()}
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
func runStep(ctx context.Context, args []string, out, errw io.Writer) int {
	return step.Main(ctx, stepRegistry(), args, out, errw)
}

// toolVersions are the versions that the toolchain must have, by name.
func toolVersions(pins *lock.Lock) map[string]string {
	tools := map[string]string{}
	for _, t := range pins.Tools {
		tools[t.Name] = t.Version
	}
	return tools
}
