package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// keepLimit is how long writing a run's record may take; it is written after a
// cancelled run too.
const keepLimit = 2 * time.Minute

// errKeepTime is the cause of a context in which a record is written when that
// took too long.
var errKeepTime = fmt.Errorf("the container that writes did not end within %s", keepLimit)

// conduct runs a graph with its hooks and returns the run's record, whatever the
// outcome. There is no record when a hook lacks what it needs, and when the lock
// cannot be had: nothing was changed.
func (c *Conductor) conduct(ctx context.Context, workflow string, p *pipeline.Pipeline) (*report.Run, error) {
	own := boundHooks(c.opts.Config.HooksOf(workflow), p.Graph())
	if err := c.checkHooks(ctx, own); err != nil {
		return nil, err
	}
	record := c.newRecord(workflow)
	record.Plan(p.Graph())
	// A run that is killed leaves this record beside those of its steps. Writing
	// it takes a container, so it does not hold the first step up.
	ctx, end := c.takeLock(ctx, workflow)
	defer end(nil)
	begun := make(chan error, 1)
	begin := *record
	go func() {
		if err := c.lease.wait(ctx); err != nil {
			begun <- nil // there is no run then
			return
		}
		begun <- c.write(ctx, &begin, nil)
	}()
	observe := oneAtATime(c.opts.Observe)
	hooks := &hookRunner{run: c.run, deployment: c.opts.Config.Global.Name, workflow: workflow, exec: c.execHook, observe: observe}
	if c.opts.Begin != nil {
		c.opts.Begin(p.Graph())
	}
	around := append(slices.Clone(c.opts.Hooks), hooks.bind(own)...)
	c.hooked = nil
	for _, h := range around {
		if h.Step != "" {
			c.hooked = append(c.hooked, h.Step)
		}
	}
	if slices.ContainsFunc(around, func(h pipeline.Hook) bool { return h.Step == "" && h.Before != nil }) {
		around = slices.Insert(around, 0, c.lockHook())
	}
	results, err := p.Run(ctx, pipeline.Options{
		Select: c.opts.Select, Parallel: c.opts.Parallel, Stop: c.opts.Stop, Observe: observe,
		Hooks: around, CleanupTimeout: hookPatience(own),
		Diagnose: func(ctx context.Context, failed []pipeline.Result) error {
			if !c.lease.held() {
				return nil
			}
			d, err := c.diagnose(ctx, failed)
			note(record, failed, d, err)
			return err
		},
	})
	if !c.lease.held() {
		return nil, err
	}
	if e := <-begun; e != nil && ctx.Err() == nil {
		err = errors.Join(err, e)
	}
	c.hookLogs = hooks.logs
	record.Finish(append(results, hooks.ended...), err, time.Now())
	return record, err
}

// newRecord is the record of a run that begins now.
func (c *Conductor) newRecord(workflow string) *report.Run {
	record := &report.Run{
		ID: c.run, Workflow: workflow, Deployment: c.opts.Config.Global.Name, Provider: c.opts.Config.Provider,
		Config: c.opts.Config.Digest(), Slipway: c.opts.Version, Started: time.Now().UTC(), Outcome: report.Running,
		Tools: c.opts.Images.Tools,
	}
	if r := c.opts.Release; r != nil {
		record.Platform = report.Platform{Name: r.Name, Version: r.Version, Digest: c.opts.ReleaseDigest}
	}
	return record
}

// oneAtATime is observe for events of several origins: calls do not overlap.
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

// keepFile is where the container that keeps a record finds it.
const keepFile = "/slipway/keep.json"

// keep writes the record of a run that has ended and, at the same time, stops
// the cluster's service; then it gives the lock up. It returns err, joined by what
// went wrong here.
func (c *Conductor) keep(ctx context.Context, record *report.Run, state *contract.RuntimeState, err error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), keepLimit, errKeepTime)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		if c.cluster == nil {
			stopped <- nil
			return
		}
		stopped <- c.cluster.Stop(ctx)
	}()
	if c.opts.Hint != nil {
		record.Address(c.opts.Hint)
	}
	writeErr := c.write(ctx, record, state)
	if stopErr := <-stopped; stopErr != nil {
		writeErr = errors.Join(writeErr, stopErr)
	}
	return errors.Join(err, writeErr, c.lease.release(ctx))
}

// write puts the record, and the runtime state unless that is nil, into the
// deployment's state.
func (c *Conductor) write(ctx context.Context, record *report.Run, state *contract.RuntimeState) error {
	// The rest of the run's directory is made from this one when somebody asks for
	// it: see Report.
	text, encErr := record.Encode()
	kept := contract.Kept{Run: record.ID, Files: map[string]string{
		report.RecordFile: string(text), "config.yaml": c.configYAML(),
	}, Runtime: state}
	maps.Copy(kept.Files, c.hookLogs)
	data, jsonErr := json.Marshal(kept)
	if err := errors.Join(encErr, jsonErr); err != nil {
		return fmt.Errorf("encode the run's record: %w", err)
	}
	done, err := c.deployment.Exec(ctx, containers.Exec{
		Args: []string{"slipway", "state", "keep", keepFile}, Files: map[string]string{keepFile: string(data)}, Result: keepFile,
	})
	if err == nil {
		err = ended([]string{"slipway", "state", "keep"}, done)
	}
	return c.notKept(err)
}

// notKept is the fault of a record that could not be written; nil for no error,
// and the one in err if it has one.
func (c *Conductor) notKept(err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*fault.Fault](err); coded {
		return fmt.Errorf("keep the run's record: %w", err)
	}
	f := &fault.Fault{
		Code: codeNotKept, Class: fault.Step, Op: "keep the run's record",
		Fix: "free space on the machine that runs the Dagger engine; look at the deployment: slipway status",
		Err: fmt.Errorf("write to the state of deployment %s: %w", c.opts.Config.Global.Name, err),
	}
	switch {
	case errors.Is(err, errKeepTime):
		f.Class = fault.Timeout
	case errors.Is(err, context.Canceled):
		f.Class = fault.Cancelled
	}
	return f
}

// configYAML is the configuration as it was understood, for the run's record.
func (c *Conductor) configYAML() string {
	b, err := yaml.JSONToYAML(c.opts.Config.Canonical())
	if err != nil {
		return "# " + err.Error() + "\n"
	}
	return string(b)
}

// appsOf converts for the record.
func appsOf(apps contract.Apps) []report.App {
	out := make([]report.App, len(apps.Apps))
	for i, a := range apps.Apps {
		out[i] = report.App(a)
	}
	return out
}
