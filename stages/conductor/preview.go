package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Preview finds out what w would do, and keeps that plan in the deployment's state. It
// changes nothing else and takes no lock.
//
// A cluster of Slipway's own that does not run is started for it and stopped again, but for
// a plan to remove it.
func (c *Conductor) Preview(ctx context.Context, w Workflow) (*contract.Preview, error) {
	if _, err := c.access.secret(ctx); err != nil {
		return nil, err
	}
	there, err := c.running(ctx, w)
	if err != nil {
		return nil, err
	}
	var out *contract.Preview
	look := func(ctx context.Context) (err error) {
		out, err = c.preview(ctx, w, contract.PreviewRequest{Cluster: there}, report.NewID(time.Now()))
		return err
	}
	stop, err := c.startFor(ctx, there)
	if err == nil {
		err = look(ctx)
	}
	return out, errors.Join(err, stop())
}

// Nothing reports whether w, which removes, would find nothing of a deployment that is not
// known. What is known of one is in its state; an existing cluster may have
// outlived that, and is looked at.
func (c *Conductor) Nothing(ctx context.Context, w Workflow) (bool, error) {
	if c.access == nil {
		return true, nil
	}
	plan, err := c.Preview(ctx, w)
	if err != nil {
		return false, err
	}
	return !plan.Changes() && len(plan.Unknown)+len(plan.Refused) == 0, nil
}

// startFor starts the cluster for a preview, if it is there and does not run, and waits for
// its pods: a preview looks once. What it returns stops it again.
func (c *Conductor) startFor(ctx context.Context, there bool) (stop func() error, err error) {
	if c.service == nil || !there || c.opts.Background != "" {
		return func() error { return nil }, nil
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		return c.service.Stop(ctx)
	}, c.start(ctx, c.service.Service())
}

// Approve has the next workflow do what the plan of a digest says: under the lock, and before
// it changes anything, the plan is made again. If it is another one, a fault says what has
// changed, and nothing is done.
func (c *Conductor) Approve(digest string) { c.opts.Approve, c.opts.Path.Passed = digest, 0 }

// Agreed notes that somebody has agreed to the next workflow: see Options.Approval.
func (c *Conductor) Agreed(a *report.Approval) { c.opts.Approval = a }

// approved makes the plan that was approved again, under the lock, and notes it in the record.
func (r *run) approved(ctx context.Context, lock *deploymentLock, record *report.Run) (err error) {
	if r.opts.Approve == "" {
		return nil
	}
	if err := lock.wait(ctx); err != nil {
		return err
	}
	there, err := r.running(ctx, r.workflow)
	if err != nil {
		return err
	}
	// It runs on for the workflow.
	stop, err := r.startFor(ctx, there)
	if err != nil {
		return errors.Join(err, stop())
	}
	plan, err := r.preview(ctx, r.workflow, contract.PreviewRequest{Cluster: there, Approved: r.opts.Approve}, record.ID)
	if err != nil {
		return errors.Join(err, stop())
	}
	var text strings.Builder
	if err := plan.Text(&text); err != nil {
		return err
	}
	record.Approved = &report.Plan{Digest: r.opts.Approve, Text: text.String()}
	return nil
}

// running reports whether there is a cluster for a preview of w to look at: one that runs, or
// that is to be started.
func (c *Conductor) running(ctx context.Context, w Workflow) (bool, error) {
	if c.service == nil {
		return true, nil
	}
	if c.opts.Background != "" {
		return true, nil
	}
	if w.Removes {
		return false, nil
	}
	s, err := c.stored(ctx)
	switch {
	case err != nil:
		return false, err
	case s.Lost:
		return false, nil
	}
	return s.Cluster, nil
}

// preview runs `slipway preview` in a container with all that any step gets.
func (c *Conductor) preview(ctx context.Context, w Workflow, req contract.PreviewRequest, id string) (*contract.Preview, error) {
	steps := c.runner(id, nil)
	r := &run{Conductor: c, workflow: w, steps: steps}
	req.Plan, req.By, req.PlannedPath = r.plan(), id, c.opts.Path
	text, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be planned: %w", err)
	}
	e := containers.Exec{
		Args:   []string{"slipway", "preview", contract.PreviewRequestFile, contract.PreviewFile},
		Files:  contract.Parts(contract.PreviewRequestFile, string(text)),
		Result: contract.PreviewFile,
	}
	spec := contract.CheckEarlierSpec()
	spec.Terraform, spec.Offline, spec.Platform = true, !req.Cluster, c.opts.ReleaseDir != nil
	if err := steps.mount(ctx, &e, spec); err != nil {
		return nil, err
	}
	out := &contract.Preview{}
	if err := c.commands.result(ctx, e, out); err != nil {
		return nil, err
	}
	return out, nil
}
