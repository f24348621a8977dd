package incontainer

import (
	"io"

	"k8s.io/klog/v2"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/component"
	"github.com/slipway-sh/slipway/stages/data"
	"github.com/slipway-sh/slipway/stages/infrastructure"
	"github.com/slipway-sh/slipway/stages/internal/diagnosis"
	"github.com/slipway-sh/slipway/stages/orchestrator"
	"github.com/slipway-sh/slipway/stages/postorchestrator"
	"github.com/slipway-sh/slipway/stages/preorchestrator"
	"github.com/slipway-sh/slipway/stages/step"
	"github.com/slipway-sh/slipway/stages/tests"
)

// Steps are all that Slipway has, whose state is in a volume or in one of these stores.
func Steps(stores map[string]store.Opener) *step.Registry {
	reg := step.Registry{Stores: stores}
	infrastructure.Register(&reg, tree)
	preorchestrator.Register(&reg)
	component.Register(&reg)
	data.Register(&reg)
	orchestrator.Register(&reg)
	postorchestrator.Register(&reg)
	tests.Register(&reg)
	diagnosis.Register(&reg)
	// client-go logs every connection that it could not make; the steps retry and say
	// themselves what they wait for.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	return &reg
}
