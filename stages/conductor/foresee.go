package conductor

import (
	"context"
	"encoding/json"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Foresight previews one step, and returns the output that those after it are previewed
// with.
type Foresight func(context.Context, contract.Spec, contract.Request) (json.RawMessage, error)

// foreseer has each step previewed in this process.
type foreseer struct {
	requests
	step Foresight
}

func (f *foreseer) run(ctx context.Context, s contract.Spec, in, out any) (contract.Result, error) {
	req, err := f.of(s, in)
	if err != nil {
		return contract.Result{}, err
	}
	text, err := f.step(ctx, s, req)
	if err != nil {
		return contract.Result{Status: contract.Failed}, err
	}
	return contract.Result{Status: contract.Succeeded}, contract.Result{Output: text}.Decode(req.ID(), out)
}

// Foresee has every step of w previewed by step, in the order of a run, and returns how each
// ended: what cannot be previewed fails, and blocks what needs it.
func Foresee(ctx context.Context, w Workflow, plan contract.Plan, cfg *config.Config, release *platform.Release, step Foresight) ([]pipeline.Result, error) {
	f := &foreseer{requests: requestsOf(cfg, plan.Run, plan.Release, plan.Images), step: step}
	g, err := newGraph(w, inputsOf(plan, cfg, release), f, nil)
	if err != nil {
		return nil, err
	}
	results, err := g.pipeline.Run(ctx, pipeline.Options{})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if results == nil {
		return nil, err
	}
	return results, nil
}

// inputsOf are what the graph of a plan is wired from.
func inputsOf(plan contract.Plan, cfg *config.Config, release *platform.Release) Inputs {
	return Inputs{
		Config: cfg, Release: release, Site: plan.Site, Images: plan.Refs, Rewrite: plan.Rewrite, Tools: plan.Tools,
		UserSecrets: plan.UserSecrets, RunOptions: plan.RunOptions,
	}
}
