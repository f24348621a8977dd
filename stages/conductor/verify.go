package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// worthwhile is how many steps must have succeeded before for their results to be
// looked at all at once; for fewer, that takes longer than each on its own.
const worthwhile = 4

// errHooked is why a step is not looked at.
var errHooked = errors.New("hooks run around it")

// Verification is what infrastructure/verify found.
type Verification struct {
	Hold int `json:"hold"` // steps whose earlier results hold
}

// addVerify looks at the earlier results of all steps at once: one container
// carries the whole graph out without changing anything. The steps that follow take
// their results from it; one that is not among them looks for itself. There is
// nothing to look at in a first run, and no point where hooks run around each step.
func (c *Conductor) addVerify(p *pipeline.Pipeline, needs ...pipeline.Dep) *pipeline.Step[Verification] {
	key := contract.VerifySpec().Key
	return pipeline.Add(p, key, func(ctx context.Context) (out Verification, err error) {
		if c.inProcess != nil || c.known < worthwhile || slices.Contains(c.hooked, pipeline.EveryStep) {
			return out, nil
		}
		ctx, end := inSpan(ctx, key)
		defer func() { end(contract.Succeeded, err) }()
		if err := c.lease.wait(ctx); err != nil {
			return out, err
		}
		found, err := c.verify(ctx)
		c.verified = found.Steps
		out.Hold = len(found.Steps)
		return out, err
	}, needs...)
}

// verify runs `slipway verify` in a container with all that any step gets.
func (c *Conductor) verify(ctx context.Context) (found contract.Verified, err error) {
	plan, err := json.Marshal(contract.Plan{
		Run: c.run, Config: c.opts.Config.Canonical(), Refs: c.opts.Images.Refs, Images: c.opts.Images.Digest,
		Release: c.opts.ReleaseDigest, Tools: c.opts.Tools, Given: c.given, Selection: c.opts.Select,
		Hooked: c.hooked,
	})
	if err != nil {
		return found, fmt.Errorf("encode what is to be verified: %w", err)
	}
	e := containers.Exec{
		Args:        []string{"slipway", "verify", contract.PlanFile, contract.VerifiedFile},
		Files:       map[string]string{contract.PlanFile: string(plan)},
		Directories: map[string]*dagger.Directory{},
		Secrets:     map[string]*dagger.Secret{},
		Result:      contract.VerifiedFile,
	}
	if err := c.mount(&e, contract.VerifySpec()); err != nil {
		return found, err
	}
	return found, c.answer(ctx, e, &found)
}

// Verify carries plan out in this process, where run runs a step as far as that
// changes nothing, and returns what holds. observe, which may be nil, is told of
// every step that is looked at.
func Verify(ctx context.Context, plan contract.Plan, cfg *config.Config, provider providers.Provider, release *platform.Release,
	run func(context.Context, contract.Request) contract.Result, observe func(pipeline.Event)) (contract.Verified, error) {
	c := &Conductor{
		opts: Options{
			Config: cfg, Provider: provider, Release: release, ReleaseDigest: plan.Release,
			Images: &containers.Images{Refs: plan.Refs, Digest: plan.Images}, Tools: plan.Tools,
		},
		place:     providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale, Section: cfg.Section(cfg.Provider)},
		run:       plan.Run,
		given:     plan.Given,
		inProcess: run,
		hooked:    plan.Hooked,
		verified:  map[string]contract.Seen{},
	}
	if _, ok := provider.(providers.ClusterServer); ok {
		c.cluster = &containers.Cluster{}
	}
	var p pipeline.Pipeline
	if _, err := c.install(&p); err != nil {
		return contract.Verified{}, err
	}
	// A step that does not hold is no failure here, and what needs it is not
	// looked at.
	tell := func(e pipeline.Event) {
		if _, looked := c.online[e.Result.Key]; looked && observe != nil {
			observe(e)
		}
	}
	if results, err := p.Run(ctx, pipeline.Options{Select: plan.Selection, Observe: tell}); results == nil {
		return contract.Verified{}, err
	}
	if ctx.Err() != nil {
		return contract.Verified{}, context.Cause(ctx)
	}
	return contract.Verified{Steps: maps.Clone(c.verified), Total: len(c.online)}, nil
}

// look runs a step in this process and keeps its earlier result if that holds.
func (c *Conductor) look(ctx context.Context, req contract.Request, out any) (contract.Result, error) {
	if slices.Contains(c.hooked, req.ID()) {
		return contract.Result{Status: contract.Failed}, errHooked
	}
	result := c.inProcess(ctx, req)
	err := result.Decode(req.ID(), out)
	if err == nil && result.Status == contract.Reused {
		c.mu.Lock()
		c.verified[req.ID()] = contract.Seen{Digests: req.Digests, Input: req.Input, Result: result}
		c.mu.Unlock()
	}
	return result, err
}
