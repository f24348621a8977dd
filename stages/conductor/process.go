package conductor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// errHooked is why a step is not checked.
var errHooked = errors.New("hooks run around it")

// processRunner runs steps in this process to verify their earlier results: a step may
// only reuse.
type processRunner struct {
	requests
	step   func(context.Context, contract.Request) contract.Result
	hooked []string // steps and stages with hooks around them

	mu       sync.Mutex
	verified map[string]contract.Seen
}

func (p *processRunner) run(ctx context.Context, s contract.Spec, in, out any) (contract.Result, error) {
	if slices.Contains(p.hooked, s.String()) || slices.Contains(p.hooked, s.Stage) {
		return contract.Result{Status: contract.Failed}, errHooked
	}
	req, err := p.of(s, in)
	if err != nil {
		return contract.Result{}, err
	}
	req.VerifyOnly, req.LeftOut, req.Locked = true, pipeline.VerifyOnly(ctx), !s.Harmless
	result := p.step(ctx, req)
	err = result.Decode(req.ID(), out)
	if err == nil && result.Status == contract.Reused {
		p.mu.Lock()
		p.verified[req.ID()] = contract.Seen{Digests: req.Digests, Input: req.Input, Result: result}
		p.mu.Unlock()
	}
	return result, err
}

// Verify carries out plan, which is for w, in this process and returns which earlier results
// hold. step runs a step without changing anything. observe, which may be nil, is called
// for every step that is checked.
func Verify(ctx context.Context, w Workflow, plan contract.Plan, cfg *config.Config, release *platform.Release,
	step func(context.Context, contract.Request) contract.Result, observe func(pipeline.Event)) (contract.Verified, error) {
	p := &processRunner{
		requests: requestsOf(cfg, plan.Run, plan.Release, plan.Images),
		step:     step, hooked: plan.Hooked, verified: map[string]contract.Seen{},
	}
	// The container is connected to the cluster, which runs: there is no action to take.
	g, err := newGraph(w, inputsOf(plan, cfg, release), p, nil)
	if err != nil {
		return contract.Verified{}, err
	}
	// A result that no longer holds is no failure here; the step's dependents are not checked.
	steps := func(e pipeline.Event) {
		if _, isStep := g.specs[e.Result.Key]; isStep && observe != nil {
			observe(e)
		}
	}
	if results, err := g.pipeline.Run(ctx, pipeline.Options{Select: plan.Selection, Observe: steps}); results == nil {
		return contract.Verified{}, err
	}
	if ctx.Err() != nil {
		return contract.Verified{}, context.Cause(ctx)
	}
	return contract.Verified{Steps: maps.Clone(p.verified), Total: len(g.specs)}, nil
}

// requestsOf makes the requests of a run.
func requestsOf(cfg *config.Config, run, release, images string) requests {
	return requests{
		run: run, deployment: cfg.Global.Name, timeout: time.Duration(cfg.Advanced.Timeouts.Step),
		release: release, images: images,
	}
}
