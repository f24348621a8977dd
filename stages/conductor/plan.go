package conductor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Plan finds out what w would do, and keeps that plan in the deployment's state. It changes nothing else
// and takes no lock. Unless w removes, it starts Slipway's cluster, if that does not run, and stops it again.
func (c *Conductor) Plan(ctx context.Context, w stages.Workflow) (*contract.Plan, error) {
	if _, err := c.access.secret(ctx); err != nil {
		return nil, err
	}
	plan, started, err := c.plan(ctx, c.planRequest(w, report.NewID(time.Now())), w)
	if started {
		err = errors.Join(err, c.stop(ctx))
	}
	return plan, err
}

// Nothing reports whether w, which removes, would find nothing of a deployment that the state does not
// know: an existing cluster may have outlived the state.
func (c *Conductor) Nothing(ctx context.Context, w stages.Workflow) (bool, error) {
	if c.access == nil {
		return true, nil
	}
	plan, err := c.Plan(ctx, w)
	if err != nil {
		return false, err
	}
	return plan.Empty() && len(plan.Unknown)+len(plan.Refused) == 0, nil
}

// Approve makes the next workflow carry out only the plan of a digest: under the lock it makes the plan
// again, and a fault says what has changed since.
func (c *Conductor) Approve(digest string) { c.opts.Approve = digest }

// Agreed notes that somebody has agreed to the next workflow: see Options.Approval.
func (c *Conductor) Agreed(a *report.Approval) { c.opts.Approval = a }

// approved makes the plan that was approved again, under the lock, and notes it in the record. A
// cluster that was started for it runs on for the workflow.
func (r *run) approved(ctx context.Context, lock *deploymentLock, record *report.Run) error {
	if r.opts.Approve == "" {
		return nil
	}
	if err := lock.wait(ctx); err != nil {
		return err
	}
	req := r.planRequest(r.workflow, record.ID)
	req.Approved = r.opts.Approve
	plan, started, err := r.plan(ctx, req, r.workflow)
	if err != nil && started {
		err = errors.Join(err, r.stop(ctx))
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := plan.Text(&text); err != nil {
		return err
	}
	record.Approved = &report.Plan{Digest: r.opts.Approve, Text: text.String()}
	return nil
}

// plan has a container plan w. It starts the cluster, if it is there and does not run, and waits
// for its pods: a plan looks once. It reports whether it started the cluster.
func (c *Conductor) plan(ctx context.Context, req contract.PlanRequest, w stages.Workflow) (plan *contract.Plan, started bool, err error) {
	if req.Cluster, err = c.hasCluster(ctx, w); err != nil {
		return nil, false, err
	}
	if started = c.service != nil && req.Cluster && c.opts.Background == ""; started {
		if err := c.start(ctx, c.service.Service()); err != nil {
			return nil, started, err
		}
	}
	spec := contract.CheckEarlierSpec()
	spec.Terraform, spec.Offline, spec.Platform = true, !req.Cluster, c.opts.ReleaseDir != nil
	plan = &contract.Plan{}
	return plan, started, c.runner(req.Run, nil).dryRun(ctx, spec, req, plan)
}

// hasCluster reports whether there is a cluster, running or not, for a plan of w to look at.
func (c *Conductor) hasCluster(ctx context.Context, w stages.Workflow) (bool, error) {
	switch {
	case c.service == nil, c.opts.Background != "":
		return true, nil
	case w.Removes:
		return false, nil
	}
	s, err := c.stored(ctx)
	return err == nil && s.Cluster && !s.Lost, err
}

func (c *Conductor) planRequest(w stages.Workflow, run string) contract.PlanRequest {
	return contract.PlanRequest{Workflow: w.Name, Run: run, ConfigText: c.inputs.Config.Canonical(), Inputs: c.inputs, PlannedPath: c.opts.Path}
}

// verifyFrom is how many earlier results it takes for one container to verify them faster than each step.
const verifyFrom = 4

// verifyAll verifies the earlier results of all steps in one container. It does nothing if fewer than
// verifyFrom steps have run before, or if hooks run around every step or the infrastructure stage.
func (c *containerRunner) verifyAll(ctx context.Context, req contract.PlanRequest) (err error) {
	spec := contract.CheckEarlierSpec()
	if err := c.lock.wait(ctx); err != nil {
		return err
	}
	if c.known < verifyFrom || slices.Contains(req.Hooked, pipeline.EveryStep) || slices.Contains(req.Hooked, spec.Stage) {
		return nil
	}
	ctx, end := stages.Span(ctx, spec.Key)
	defer func() { end(contract.Succeeded, err) }()
	req.Verify = true
	var found contract.Verified
	err = c.dryRun(ctx, spec, req, &found)
	c.cached = found.Steps
	return err
}

// dryRun runs `slipway dry-run` in a container with all that spec says.
func (c *containerRunner) dryRun(ctx context.Context, spec contract.Spec, req contract.PlanRequest, out any) error {
	e, err := c.execution(ctx, spec, req, "slipway", "dry-run", contract.RequestFile, contract.ResultFile)
	if err != nil {
		return err
	}
	return commands{c.deployment}.result(ctx, e, out)
}
