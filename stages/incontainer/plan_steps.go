package incontainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

type planner struct {
	*Planner
	req  contract.PlanRequest
	seen *plan.Plan
	out  *contract.Plan
	// known is what Terraform said last. The other steps are planned with it, and as if
	// nobody else's objects were in their way, beside those that find it out; if these find
	// something else, all are planned again, in their order.
	known  *contract.Infrastructure
	beside errgroup.Group

	mu      sync.Mutex
	outputs map[string]json.RawMessage // of the steps, by "stage/step"
	later   []contract.PlannedUnknown
}

var errNoCluster = errors.New("there is no cluster yet")

// errOther is that a step finds something else than was presumed.
var errOther = errors.New("it is not what was presumed")

// step plans one step, in a context of its own; lasting is that of all of them.
func (p *planner) step(lasting, ctx context.Context, s contract.Spec, req contract.Request) (json.RawMessage, error) {
	seen, looks := p.seen, s.Key == contract.OwnershipStep().Key && !p.req.TakeOwnership
	if looks { // at what there is, not at what would be; and it would write nothing
		seen = &plan.Plan{}
	}
	switch {
	case !s.Offline && !p.req.Cluster:
		return nil, errNoCluster
	case p.known == nil || !p.req.Cluster:
	case s.Key == contract.TerraformStep().Key:
		return p.presumed(lasting, req, seen, *p.known)
	case looks:
		return p.presumed(lasting, req, seen, contract.Ownership{})
	}
	return p.look(ctx, req, seen)
}

// presumed is the output of a step that is planned beside the others, which do not wait for it.
// What Terraform finds must be that; who owns the objects is found, or the step fails.
func (p *planner) presumed(ctx context.Context, req contract.Request, seen *plan.Plan, output any) (json.RawMessage, error) {
	text, err := json.Marshal(output)
	p.beside.Go(func() error {
		out, err := p.look(ctx, req, seen)
		if _, must := output.(contract.Infrastructure); err == nil && must && !bytes.Equal(out, text) {
			err = errOther
		}
		return err
	})
	return text, err
}

// look plans one step; what it would write comes into seen.
func (p *planner) look(ctx context.Context, req contract.Request, seen *plan.Plan) (json.RawMessage, error) {
	out, later, err := step.Plan(ctx, p.Steps, req, p.Dirs, seen)
	p.mu.Lock()
	defer p.mu.Unlock()
	if later != "" {
		p.later = append(p.later, contract.PlannedUnknown{What: req.ID(), Why: later})
	}
	if err == nil {
		p.outputs[req.ID()] = out
	}
	return out, err
}

// note fills in what could not be planned, and what the run would end with.
func (p *planner) note(results []pipeline.Result) {
	p.out.Unknown = append(p.out.Unknown, p.later...)
	for _, r := range results {
		switch {
		case r.Status.OK():
		case r.Status == pipeline.Failed || r.Status == pipeline.Warned:
			if errors.Is(r.Err, errNoCluster) { // its objects are rendered
				continue
			}
			all := fault.All(r.Err)
			if len(all) == 0 {
				p.out.Unknown = append(p.out.Unknown, contract.PlannedUnknown{What: r.String(), Why: r.Err.Error()})
			}
			for _, f := range all {
				p.out.Refused = append(p.out.Refused, contract.PlannedUnknown{What: r.String(), Why: f.Error(), Code: string(f.Code), Exit: int(f.Class), Fix: f.Fix})
			}
		case p.req.Cluster && r.Err != nil:
			p.out.Unknown = append(p.out.Unknown, contract.PlannedUnknown{What: r.String(), Why: r.Err.Error()})
		}
	}
}

// render has everything that the release is made of added: there is no cluster yet.
func (p *planner) render(ctx context.Context) error {
	input, err := stages.Rendering(p.req.Inputs, nil)
	if err == nil {
		input.Order, err = stages.Order(p.req.Inputs)
	}
	if err != nil {
		return err
	}
	input.Manifests = os.DirFS(filepath.Join(p.Dirs.Bundle, "manifests"))
	input.Kubernetes = p.req.Tools["kubectl"]
	parts, err := p.Render(ctx, p.req.Release, input)
	if err != nil {
		return fmt.Errorf("render the platform release: %w", err)
	}
	for i, part := range parts {
		who := part.Component
		if who == "" {
			who = part.Kind
		}
		if part.Err != nil {
			p.out.Unknown = append(p.out.Unknown, contract.PlannedUnknown{What: who, Why: part.Err.Error()})
		}
		for n, o := range part.Objects {
			p.seen.Of(who).Put(fmt.Sprintf("rendered/%d/%d", i, n), nil, o, "")
			p.placeholders(o)
		}
	}
	p.out.Unknown = append(p.out.Unknown, contract.PlannedUnknown{What: "objects", Why: errNoCluster.Error() + ": they are as they are rendered, and nobody has checked them"})
	return nil
}

// placeholders has what stands for the values of a rendered Secret shown as it is.
func (p *planner) placeholders(o map[string]any) {
	values, _ := o["stringData"].(map[string]any)
	for _, v := range values {
		if text, is := v.(string); is && o["kind"] == "Secret" {
			p.seen.Of("").Label(text, strings.Trim(text, "<>"))
		}
	}
}

// verify checks the earlier results of all steps and reports on screen how many hold.
func (p *Planner) verify(ctx context.Context, req contract.PlanRequest, screen io.Writer) (contract.Verified, error) {
	w, err := p.load(&req)
	if err != nil {
		return contract.Verified{}, err
	}
	found, err := stages.Verify(ctx, w, req, func(ctx context.Context, req contract.Request) contract.Result {
		return step.Perform(ctx, p.Steps, req, p.Dirs, "", io.Discard) // each has its log
	})
	if err == nil {
		say(screen, "verify", "%d earlier results hold", len(found.Steps))
	}
	return found, err
}
