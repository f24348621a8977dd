package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// writeLimit is how long writing a run's record may take, also after a cancelled run.
const writeLimit = 2 * time.Minute

// errWriteTime is the cause of a context in which writing a record took too long.
var errWriteTime = fmt.Errorf("the container that writes did not end within %s", writeLimit)

// recordFile is where the container that writes a record finds it.
const recordFile = "/slipway/keep.json"

// finish writes the record of a run that has ended and, at the same time, stops the cluster's
// service; then it gives the lock up. It returns err, joined by what went wrong here.
func (r *run) finish(ctx context.Context, record *report.Run, state *contract.RuntimeState, l *deploymentLock, err error) error {
	writing, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), writeLimit, errWriteTime)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		if r.service == nil {
			stopped <- nil
			return
		}
		stopped <- r.service.Stop(writing)
	}()
	record.AddFlags(r.opts.Flags)
	writeErr := l.noteLoss(r.write(writing, record, state))
	if lost := l.loss(); lost != nil && fault.ClassOf(err) != fault.Locked { // what else is wrong must not hide it
		err = errors.Join(lost, err)
	}
	return errors.Join(err, writeErr, <-stopped, l.release(ctx))
}

// write stores the record and, unless it is nil, the runtime state.
func (r *run) write(ctx context.Context, record *report.Run, state *contract.RuntimeState) error {
	// Records.Report makes the rest of the run's directory from this one when somebody asks for it.
	text, encErr := record.Encode()
	out := contract.RunFiles{Run: record.ID, Files: map[string]string{
		report.RecordFile: string(text), "config.yaml": r.configYAML(),
	}, Runtime: state}
	maps.Copy(out.Files, r.logs)
	data, jsonErr := json.Marshal(out)
	if err := errors.Join(encErr, jsonErr); err != nil {
		return fmt.Errorf("encode the run's record: %w", err)
	}
	e := containers.Exec{Files: contract.Parts(recordFile, string(data))}
	_, err := query(ctx, r.commands, e, contract.KeepRun, contract.RecordInput{Path: recordFile})
	return r.notWritten(err)
}

// notWritten is the fault of a record that could not be written; an error that has a fault keeps it.
func (r *run) notWritten(err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*fault.Fault](err); coded {
		return fmt.Errorf("write the run's record: %w", err)
	}
	f := &fault.Fault{
		Code: codeNotWritten, Class: fault.Step, Op: "write the run's record",
		Fix: "free space on the machine that runs the Dagger engine; look at the deployment: slipway status --live",
		Err: fmt.Errorf("write to the state of deployment %s: %w", r.name, err),
	}
	switch {
	case errors.Is(err, errWriteTime):
		f.Class = fault.Timeout
	case errors.Is(err, context.Canceled):
		f.Class = fault.Cancelled
	}
	return f
}

// configYAML is the configuration as it was understood, for the run's record.
func (r *run) configYAML() string {
	b, err := yaml.JSONToYAML(r.opts.Config.Canonical())
	if err != nil {
		return "# " + err.Error() + "\n"
	}
	return string(b)
}
