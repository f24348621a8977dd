package conductor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Conduct carries w out and returns the record of the run, whatever the outcome; nil if it started
// nothing, because of the selection, a hook's secrets, the access to the cluster, or the lock.
func (c *Conductor) Conduct(ctx context.Context, w stages.Workflow) (*report.Run, error) {
	if _, err := c.access.secret(ctx); err != nil {
		return nil, err
	}
	r := &run{Conductor: c, workflow: w, executor: c.hooks, steps: c.runner(report.NewID(time.Now()), nil)}
	var err error
	if r.graph, err = stages.Wire(w, c.inputs, r.steps, r.actions()); err != nil {
		return nil, err
	}
	r.executor.online = r.graph.Online
	defer func() { r.steps.lock.close() }()
	err = r.carryOut(ctx)
	if r.record == nil {
		return nil, err
	}
	found := stages.Findings{Record: r.record, State: &contract.RuntimeState{Deployment: c.name, Provider: c.opts.Config.Provider, Run: r.record.ID}}
	r.graph.Found(&found)
	if w.Tries || w.Removes || r.steps.lock.loss() != nil {
		found.State = nil
	}
	if w.Removes && err == nil {
		// Nothing may be reused after this: journal, credentials, Terraform state.
		e, entry := c.indexed(containers.Exec{})
		if _, err = query(ctx, c.commands, e, contract.PurgeState, contract.HeldInput{Who: r.who(), Entry: entry}); err != nil {
			_ = r.steps.lock.noteLoss(err) // it is the purge's own, too
			r.record.Finish(nil, err, time.Now())
		}
	}
	return r.record, r.finish(ctx, r.record, found.State, r.steps.lock, err)
}

type run struct {
	*Conductor
	workflow stages.Workflow
	graph    *stages.Graph
	steps    *containerRunner
	executor hookExecutor      // of hooks
	hooked   []string          // steps and stages with hooks around them
	logs     map[string]string // what hooks printed, by name in the run's directory
	opened   []report.Warning  // for the record, known once the lock is taken
	past     []report.Phase    // of the last run; known once the lock is taken
	record   *report.Run       // nil: nothing was started
}

// actions are what the run does besides steps.
func (r *run) actions() map[pipeline.Key]func(context.Context) error {
	locked := func(key pipeline.Key, do func(context.Context) error) func(context.Context) error {
		return spanned(key, func(ctx context.Context) error {
			if err := r.steps.lock.wait(ctx); err != nil {
				return err
			}
			return do(ctx)
		})
	}
	return map[pipeline.Key]func(context.Context) error{
		contract.NodeKey():              locked(contract.NodeKey(), func(ctx context.Context) error { return r.service.Start(ctx) }),
		contract.NodeRemoveKey():        locked(contract.NodeRemoveKey(), r.wipe),
		contract.CheckEarlierSpec().Key: r.verify,
	}
}

// verify finds the earlier results that the run takes.
func (r *run) verify(ctx context.Context) error {
	req := r.planRequest(r.workflow, r.steps.requests.Run)
	req.Until, req.Hooked = r.opts.Until, r.hooked
	return r.steps.verifyAll(ctx, req)
}

// wipe empties the node's volume; a node that runs in the background is stopped before.
func (r *run) wipe(ctx context.Context) error {
	if r.opts.Background != "" {
		if err := r.service.End(ctx); err != nil {
			return err
		}
	}
	by, err := stateCommand(contract.WipeCluster, contract.HeldInput{Who: r.who()})
	if err != nil {
		return err
	}
	err = r.Cluster.deployment.Wipe(ctx, append(by, "--")...)
	_ = r.steps.lock.noteLoss(err) // it is the action's own, too
	return err
}

// carryOut runs the graph with its hooks under the lock.
func (r *run) carryOut(ctx context.Context) error {
	nodes := r.graph.Pipeline.Graph()
	own := boundHooks(r.opts.Config.HooksOf(r.workflow.Name), nodes)
	if err := r.graph.Pipeline.CheckUntil(r.opts.Until); err != nil {
		return err
	}
	if err := MissingSecrets(own, r.executor.secret); err != nil {
		return err
	}
	id := r.steps.requests.Run
	record := r.newRecord(id, r.workflow.Name)
	record.Plan(nodes)
	if r.opts.Release != nil {
		record.Divide(stages.PhasesOf(r.opts.Release, nodes))
	}
	ctx, lock, end := r.takeLock(ctx)
	defer end(nil)
	r.steps.lock = lock
	if err := r.approved(ctx, lock, record); err != nil {
		return errors.Join(err, lock.release(ctx))
	}
	begun := r.begin(ctx, *record)
	observe := unlessRefused(lock, oneAtATime(r.opts.Observe))
	hooks := &hookRunner{run: id, deployment: r.name, workflow: r.workflow.Name, exec: r.executor.exec, observe: observe, lock: lock}
	if r.opts.Begin != nil {
		r.opts.Begin(nodes)
	}
	around := append(slices.Clone(r.opts.Hooks), hooks.bind(own)...)
	for i, h := range around {
		around[i] = lock.under(h)
		if h.Step != "" {
			r.hooked = append(r.hooked, h.Step)
		}
	}
	results, err := r.graph.Pipeline.Run(ctx, pipeline.Options{
		Until: r.opts.Until, Parallel: r.opts.Parallel, Stop: r.opts.Stop, Halt: lock.halt, Observe: observe,
		Hooks: around, CleanupTimeout: hooksTimeout(own),
		Diagnose: func(ctx context.Context, failed []pipeline.Result) error {
			if !lock.held() || lock.loss() != nil {
				return nil
			}
			d, err := diagnose(ctx, r.steps, r.graph, r.workflow.Name, failed)
			note(record, failed, d, err)
			return err
		},
	})
	if !lock.held() {
		if why := lock.refusal(); why != nil {
			return refusedRun(why, results)
		}
		if err == nil { // what needs no lock was done, and somebody has ended the run
			err = context.Cause(ctx)
		}
		return err
	}
	begin := lock.noteLoss(<-begun)
	if lost := lock.loss(); lost != nil && fault.ClassOf(err) != fault.Locked { // which what follows from it must not hide
		err = errors.Join(lost, err)
	}
	if r.workflow.Conclude != nil {
		err = r.workflow.Conclude(err)
	}
	if begin != nil && ctx.Err() == nil {
		err = errors.Join(err, begin)
	}
	r.complete(record)
	r.record, r.logs = record, hooks.logs
	record.Finish(append(results, hooks.ended...), err, time.Now())
	if r.opts.Reproduce != nil {
		record.Reproduce = r.opts.Reproduce(record)
	}
	record.Unchanged = err == nil && len(own)+len(r.opts.Hooks) == 0 && r.graph.Unchanged(results)
	return err
}

// unlessRefused is observe without what a lock that cannot be taken cancels: that is told once.
func unlessRefused(lock *deploymentLock, observe func(pipeline.Event)) func(pipeline.Event) {
	return func(e pipeline.Event) {
		if e.Status != pipeline.Cancelled || lock.refusal() == nil {
			observe(e)
		}
	}
}

// refusedRun is why a run did not get the lock, with the errors of steps that did not wait for it.
func refusedRun(why error, results []pipeline.Result) error {
	errs := []error{why}
	for _, r := range results {
		if r.Status == pipeline.Failed && !errors.Is(r.Err, why) {
			errs = append(errs, &pipeline.StepError{Stage: r.Stage, Step: r.Name, Err: r.Err})
		}
	}
	return errors.Join(errs...)
}

func (c *Conductor) newRecord(id, workflow string) *report.Run {
	record := &report.Run{
		ID: id, Workflow: workflow, Deployment: c.name, Provider: c.opts.Config.Provider,
		Config: c.opts.Config.Digest(), Slipway: c.opts.Version, Started: time.Now().UTC(), Outcome: report.Running,
		Tools: c.opts.Images.Tools, Lock: c.opts.Images.Line, Images: c.opts.Images.Digest, Engine: c.opts.Engine,
	}
	if p := c.opts.Release; p != nil {
		record.Platform = report.Platform{Name: p.Name, Version: p.Version, Digest: c.opts.ReleaseDigest, Commit: c.opts.ReleaseCommit, From: c.opts.ReleaseFrom}
	}
	if a := c.opts.Approval; a != nil {
		said := *a
		said.By = c.opts.User + "@" + c.opts.Host
		record.Approval = &said
	}
	if w := c.opts.Images.Warning; w != "" {
		record.Warnings = []report.Warning{{Summary: w, Fix: trust.Fix}}
	}
	return record
}

// begin writes the record of a run that begins, so that a run that is killed leaves one.
// Writing it starts a container, so the first step does not wait for it.
func (r *run) begin(ctx context.Context, record report.Run) <-chan error {
	begun := make(chan error, 1)
	go func() {
		if err := r.steps.lock.wait(ctx); err != nil {
			begun <- nil // there is no run then
			return
		}
		r.complete(&record)
		begun <- r.write(ctx, &record, nil)
	}()
	return begun
}

// complete adds to a record what is known once the lock is taken.
func (r *run) complete(record *report.Run) {
	record.Warnings = append(slices.Clone(record.Warnings), r.opened...)
	if r.opts.Release == nil {
		record.Divide(r.past)
	}
}

// oneAtATime serializes the calls of observe, which may be nil.
func oneAtATime(observe func(pipeline.Event)) func(pipeline.Event) {
	var mu sync.Mutex
	return func(e pipeline.Event) {
		mu.Lock()
		defer mu.Unlock()
		if observe != nil {
			observe(e)
		}
	}
}

// spanned wraps run, a step without a container of its own, in the step's span.
func spanned(key pipeline.Key, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, end := stages.Span(ctx, key)
		err := run(ctx)
		end(contract.Succeeded, err)
		return err
	}
}
