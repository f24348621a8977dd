package stages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Requests makes the requests to the steps of a run. The same values make the same requests, so a result
// that Verify has found to hold is valid for the step of the run.
type Requests struct {
	Run string // its id
	contract.Inputs
}

// Of is the request to a step with an input.
func (r Requests) Of(s contract.Spec, in any) (contract.Request, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return contract.Request{}, fmt.Errorf("encode the input of %s: %w", s, err)
	}
	lasting := input
	if v, ok := in.(contract.Volatile); ok {
		if lasting, err = json.Marshal(v.CacheKey()); err != nil {
			return contract.Request{}, fmt.Errorf("encode the input of %s: %w", s, err)
		}
	}
	code := ""
	if s.Code != (pipeline.Key{}) {
		code = s.Code.String()
	}
	return contract.Request{
		Run: r.Run, Stage: s.Stage, Step: s.Name, Code: code, Timeout: contract.Duration(cmp.Or(s.Timeout, time.Duration(r.Config.Advanced.Timeouts.Step))),
		Deployment: r.Config.Global.Name, Digests: r.digests(s, lasting), Input: input,
		Cluster: !s.Offline,
	}, nil
}

// digests are what an earlier result of a step must match to be reused: its input, the
// platform release if it reads that, and the tools and images of the run.
func (r Requests) digests(s contract.Spec, input []byte) journal.Digests {
	sum := func(parts ...string) string {
		h := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(h, "%d:%s\n", len(part), part)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	release := ""
	if s.Platform {
		release = r.ReleaseDigest
	}
	return journal.Digests{Input: sum(s.String(), string(input)), Release: sum(release), Tools: sum(r.ImagesDigest)}
}

// Do verifies or plans a step. Its result has the output that the steps after it are verified or
// planned with.
type Do func(context.Context, contract.Spec, contract.Request) (contract.Result, error)

type processRunner struct {
	requests Requests
	do       Do
}

// Run has the step done in this process.
func (p processRunner) Run(ctx context.Context, s contract.Spec, in, out any) (contract.Result, error) {
	req, err := p.requests.Of(s, in)
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
	g, err := Wire(w, plan.Inputs, processRunner{Requests{plan.Run, plan.Inputs}, do}, nil)
	if err != nil {
		return nil, err
	}
	results, err := g.Pipeline.Run(ctx, pipeline.Options{Until: plan.Until})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if results == nil {
		return nil, err
	}
	return results, nil
}

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
