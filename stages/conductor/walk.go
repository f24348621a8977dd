package conductor

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Do verifies or plans a step. Its result has the output that the steps after it are verified or
// planned with.
type Do func(context.Context, contract.Spec, contract.Request) (contract.Result, error)

// processRunner has each step done in this process.
type processRunner struct {
	requests
	do Do
}

func (p processRunner) run(ctx context.Context, s contract.Spec, in, out any) (contract.Result, error) {
	req, err := p.of(s, in)
	if err != nil {
		return contract.Result{}, err
	}
	result, err := p.do(ctx, s, req)
	if err != nil {
		return contract.Result{Status: contract.Failed}, err
	}
	return result, result.Decode(req.ID(), out)
}

// Walk has every step of w done, in this process and in the order of a run, and returns how each
// ended: what fails blocks what needs it.
func Walk(ctx context.Context, w Workflow, plan contract.PlanRequest, do Do) ([]pipeline.Result, error) {
	// There is no action to take: the container is connected to the cluster, if that runs.
	g, err := newGraph(w, plan.Inputs, processRunner{requests{plan.Run, plan.Inputs}, do}, nil)
	if err != nil {
		return nil, err
	}
	results, err := g.pipeline.Run(ctx, pipeline.Options{Until: plan.Until})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if results == nil {
		return nil, err
	}
	return results, nil
}

// errHooked is why a step is not checked.
var errHooked = errors.New("hooks run around it")

// Verify returns the earlier results of w that hold. step runs a step without changing anything.
// A result that no longer holds is no error; the step's dependents are not checked.
func Verify(ctx context.Context, w Workflow, plan contract.PlanRequest,
	step func(context.Context, contract.Request) contract.Result) (contract.Verified, error) {
	found := contract.Verified{Steps: map[string]contract.CachedResult{}}
	var mu sync.Mutex
	_, err := Walk(ctx, w, plan, func(ctx context.Context, s contract.Spec, req contract.Request) (contract.Result, error) {
		if slices.Contains(plan.Hooked, s.String()) || slices.Contains(plan.Hooked, s.Stage) {
			return contract.Result{}, errHooked
		}
		req.VerifyOnly, req.Locked = true, !s.Harmless
		result := step(ctx, req)
		if result.Status == contract.Reused {
			mu.Lock()
			defer mu.Unlock()
			found.Steps[req.ID()] = contract.CachedResult{Digests: req.Digests, Input: req.Input, Result: result}
		}
		return result, nil
	})
	if err != nil {
		return contract.Verified{}, err
	}
	return found, nil
}
