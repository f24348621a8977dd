package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of plans.
const (
	// codeStale: something has changed since the plan was made that is approved.
	codeStale fault.Code = "PLN-001"
	// codeNoPlan: no plan of the digest is kept, or what is kept under it is another one.
	codeNoPlan fault.Code = "PLN-002"
)

const planVersion = 3

// Planner carries the graph of a workflow out without changing anything, and says which earlier
// results hold, or what the workflow would do.
type Planner struct {
	Steps  *step.Registry
	Stores map[string]store.Opener
	// Render renders what an install of a release applies.
	Render func(context.Context, *platform.Release, contract.RenderInput) ([]contract.Rendered, error)
	Dirs   step.Dirs
}

// Run carries out the request in a file and writes the answer to another. A fault is written to
// screen for the conductor, too.
func (p *Planner) Run(ctx context.Context, requestFile, resultFile string, screen io.Writer) error {
	p.Dirs = p.Dirs.OrDefault()
	return WithState(ctx, p.Dirs.State, p.Stores, screen, func(s *State) error {
		data, err := contract.ReadParts(requestFile)
		if err != nil {
			return fmt.Errorf("read the request: %w", err)
		}
		var req contract.PlanRequest
		if err := json.Unmarshal(data, &req); err != nil {
			return fmt.Errorf("decode the request: %w", err)
		}
		var out any
		if req.Verify {
			out, err = p.verify(ctx, req, screen)
		} else {
			out, err = p.perform(ctx, s, req)
		}
		if err != nil {
			return err
		}
		return writeJSON(resultFile, out)
	})
}

// load completes what the graph of a request is wired from.
func (p *Planner) load(req *contract.PlanRequest) (w stages.Workflow, err error) {
	if w, err = stages.Named(req.Workflow); err != nil {
		return w, err
	}
	if req.Config, err = config.Load(req.ConfigText, config.Options{File: "the plan"}); err != nil {
		return w, err
	}
	if !w.Removes {
		req.Release, err = platform.Load(os.DirFS(p.Dirs.Platform))
	}
	return w, err
}

// perform makes the plan and keeps it, or compares it with the one that is approved.
func (p *Planner) perform(ctx context.Context, s *State, req contract.PlanRequest) (*contract.Plan, error) {
	var approved *contract.Plan
	if req.Approved != "" {
		var err error
		approved, err = state.Plan(ctx, s.store, req.Approved)
		if errors.Is(err, state.ErrNoPlan) || errors.Is(err, state.ErrOtherPlan) {
			return nil, &fault.Fault{
				Code: codeNoPlan, Class: fault.Usage, Op: "find the plan " + req.Approved, Err: err,
				Fix: "make one, and approve its digest: " + planCommand(req),
			}
		}
		if err != nil {
			return nil, err
		}
	}
	out, err := p.plan(ctx, s, req)
	if err != nil {
		return nil, err
	}
	if approved == nil {
		return out, state.PutPlan(ctx, s.store, req.Run, out)
	}
	if why := stale(approved, out); len(why) > 0 {
		return nil, &fault.Fault{
			Code: codeStale, Class: fault.Preflight, Op: "apply the approved plan",
			Err: fmt.Errorf("since it was made: %s; nothing was changed", strings.Join(why, "; ")),
			Fix: "look at what would be done now, and approve that: " + planCommand(req),
		}
	}
	return out, nil
}

func planCommand(req contract.PlanRequest) string {
	words := []string{"slipway plan", req.Workflow}
	if req.Flags != "" {
		words = append(words, req.Flags)
	}
	return strings.Join(append(words, req.AsFlags()...), " ")
}

func (p *Planner) plan(ctx context.Context, s *State, req contract.PlanRequest) (*contract.Plan, error) {
	w, err := p.load(&req)
	if err != nil {
		return nil, err
	}
	cfg, release := req.Config, req.Release
	out := &contract.Plan{
		Version: planVersion, Made: time.Now().UTC(), Deployment: cfg.Global.Name, Workflow: req.Workflow,
		Basis: contract.PlanBasis{Configuration: cfg.Digest(), Release: req.ReleaseDigest, Tools: req.ImagesDigest, Objects: map[string]string{}},
	}
	if release != nil {
		out.Release = contract.PlannedRelease{Name: release.Name, To: release.Version, Digest: req.ReleaseDigest}
	}
	out.Later = req.Later
	infrastructure, err := s.before(ctx, req.Inputs, out)
	if err != nil {
		return nil, err
	}
	var look *planner
	var nodes []pipeline.Node
	for holds := false; !holds; infrastructure = nil {
		look = &planner{Planner: p, req: req, seen: &plan.Plan{}, outputs: map[string]json.RawMessage{}, out: out, known: infrastructure}
		results, err := stages.Walk(ctx, w, req, func(step context.Context, s contract.Spec, req contract.Request) (contract.Result, error) {
			out, err := look.step(ctx, step, s, req)
			return contract.Result{Status: contract.Succeeded, Output: out}, err
		})
		holds = look.beside.Wait() == nil
		if err != nil {
			return nil, err
		}
		if holds {
			look.note(results)
			for _, r := range results {
				nodes = append(nodes, pipeline.Node{Key: r.Key})
			}
		}
	}
	objects := &maker{Seen: look.seen}
	switch {
	case release != nil && !req.Cluster:
		err = look.render(ctx)
	case release != nil:
		err = look.apps(ctx)
	}
	if err == nil && req.Cluster {
		objects.Salt, err = p.salt(ctx)
	}
	if err != nil {
		return nil, err
	}
	if out.Phases, err = s.phases(ctx, release, nodes); err != nil {
		return nil, err
	}
	objects.Fill(out)
	return out, out.Seal()
}

// phases are the phases that a run of these steps would have something of.
func (s *State) phases(ctx context.Context, release *platform.Release, nodes []pipeline.Node) ([]string, error) {
	if release != nil {
		return stages.PhaseNames(stages.PhasesOf(release, nodes), nodes), nil
	}
	last, err := s.lastPhases(ctx)
	return stages.PhaseNames(last, nodes), err
}

// salt is what the cluster mixes into digests of secrets; nil if it has none yet.
func (p *Planner) salt(ctx context.Context) ([]byte, error) {
	if _, err := os.Stat(p.Dirs.Kubeconfig()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c, err := kube.Connect(p.Dirs.Kubeconfig(), nil)
	if err != nil {
		return nil, err
	}
	o, err := c.Secret(ctx, kube.SystemNamespace, kube.SaltSecret)
	if err != nil || o == nil {
		return nil, err
	}
	return o.Data[kube.SaltKey], nil
}
