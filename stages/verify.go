package stages

import (
	"bytes"
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
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/providers"
)

// Paths in the container of infrastructure/verify.
const (
	PlanFile     = "/slipway/plan.json"
	VerifiedFile = "/slipway/verified.json"
)

// worthwhile is how many steps must have succeeded before for their results to be
// looked at all at once; for fewer, that takes longer than each on its own.
const worthwhile = 4

// Plan is what `slipway verify` wires the graph of an install from: the same one
// as its conductor.
type Plan struct {
	Run       string            `json:"run"`
	Config    json.RawMessage   `json:"config"` // canonical
	Refs      map[string]string `json:"refs"`   // of the images
	Images    string            `json:"images"` // their digest
	Release   string            `json:"release"`
	Tools     map[string]string `json:"tools"`
	TLSKey    bool              `json:"tlsKey"`
	Given     []string          `json:"given"`
	Selection pipeline.Select   `json:"selection"`
	// Hooked are the steps with hooks around them, which may change what a look
	// would see: they and what needs them are left to themselves.
	Hooked []string `json:"hooked"`
}

// Verified is what `slipway verify` leaves in VerifiedFile.
type Verified struct {
	Steps map[string]Seen `json:"steps"` // those whose results hold, by "stage/name"
	Total int             `json:"total"` // steps of the graph that can be looked at
}

// Seen is the earlier result of a step that was found to hold for an input.
type Seen struct {
	Digests journal.Digests `json:"digests"`
	Input   json.RawMessage `json:"input"`
	Result  Result          `json:"result"`
}

// of tells whether s is about what req asks.
func (s Seen) of(req Request) bool {
	return s.Digests == req.Digests && bytes.Equal(s.Input, req.Input)
}

// errHooked is why a step is not looked at.
var errHooked = errors.New("hooks run around it")

// verifyStep is the step after which a run knows which earlier results hold.
func verifyStep() step {
	return step{stage: infrastructure, name: "verify", platform: true, manifests: true, tlsKey: true, given: true}
}

// Verification is what infrastructure/verify found.
type Verification struct {
	Hold int `json:"hold"` // steps whose earlier results hold
}

// addVerify looks at the earlier results of all steps at once: one container
// carries the whole graph out without changing anything. The steps that follow take
// their results from it; one that is not among them looks for itself. There is
// nothing to look at in a first run, and no point where hooks run around each step.
func (c *Conductor) addVerify(p *pipeline.Pipeline, needs ...pipeline.Dep) *pipeline.Step[Verification] {
	key := verifyStep().key()
	return pipeline.Add(p, key, func(ctx context.Context) (out Verification, err error) {
		if c.inProcess != nil || c.known < worthwhile || slices.Contains(c.hooked, pipeline.EveryStep) {
			return out, nil
		}
		ctx, end := inSpan(ctx, key)
		defer func() { end(Succeeded, err) }()
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
func (c *Conductor) verify(ctx context.Context) (found Verified, err error) {
	plan, err := json.Marshal(Plan{
		Run: c.run, Config: c.opts.Config.Canonical(), Refs: c.opts.Images.Refs, Images: c.opts.Images.Digest,
		Release: c.opts.ReleaseDigest, Tools: c.opts.Tools, TLSKey: c.keyGiven, Given: c.given, Selection: c.opts.Select,
		Hooked: c.hooked,
	})
	if err != nil {
		return found, fmt.Errorf("encode what is to be verified: %w", err)
	}
	e := containers.Exec{
		Args:        []string{"slipway", "verify", PlanFile, VerifiedFile},
		Files:       map[string]string{PlanFile: string(plan)},
		Directories: map[string]*dagger.Directory{},
		Secrets:     map[string]*dagger.Secret{},
		Result:      VerifiedFile,
	}
	if err := c.mount(&e, verifyStep()); err != nil {
		return found, err
	}
	return found, c.answer(ctx, e, &found)
}

// Verify carries plan out in this process, where run runs a step as far as that
// changes nothing, and returns what holds. observe, which may be nil, is told of
// every step that is looked at.
func Verify(ctx context.Context, plan Plan, cfg *config.Config, provider providers.Provider, release *platform.Release,
	run func(context.Context, Request) Result, observe func(pipeline.Event)) (Verified, error) {
	c := &Conductor{
		opts: Options{
			Config: cfg, Provider: provider, Release: release, ReleaseDigest: plan.Release,
			Images: &containers.Images{Refs: plan.Refs, Digest: plan.Images}, Tools: plan.Tools,
		},
		place:     providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale, Section: cfg.Section(cfg.Provider)},
		run:       plan.Run,
		keyGiven:  plan.TLSKey,
		given:     plan.Given,
		inProcess: run,
		hooked:    plan.Hooked,
		verified:  map[string]Seen{},
	}
	if _, ok := provider.(providers.ClusterServer); ok {
		c.cluster = &containers.Cluster{}
	}
	var p pipeline.Pipeline
	if _, err := c.install(&p); err != nil {
		return Verified{}, err
	}
	// A step that does not hold is no failure here, and what needs it is not
	// looked at.
	tell := func(e pipeline.Event) {
		if _, looked := c.online[e.Result.Key]; looked && observe != nil {
			observe(e)
		}
	}
	if results, err := p.Run(ctx, pipeline.Options{Select: plan.Selection, Observe: tell}); results == nil {
		return Verified{}, err
	}
	if ctx.Err() != nil {
		return Verified{}, context.Cause(ctx)
	}
	return Verified{Steps: maps.Clone(c.verified), Total: len(c.online)}, nil
}

// look runs a step in this process and keeps its earlier result if that holds.
func (c *Conductor) look(ctx context.Context, req Request, out any) (Result, error) {
	if slices.Contains(c.hooked, req.id()) {
		return Result{Status: Failed}, errHooked
	}
	result := c.inProcess(ctx, req)
	err := result.read(req.id(), out)
	if err == nil && result.Status == Reused {
		c.mu.Lock()
		c.verified[req.id()] = Seen{req.Digests, req.Input, result}
		c.mu.Unlock()
	}
	return result, err
}
