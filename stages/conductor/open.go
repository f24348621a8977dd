package conductor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeLost: the deployment is known, and its cluster is not on this engine.
const codeLost fault.Code = "DEP-010"

// looking is e with a look at the node's volume, where the cluster has one.
func (r *Records) looking(e containers.Exec) containers.Exec {
	if r.node {
		e.NodeDir = contract.NodeDirVariable
	}
	return e
}

// lost is the fault of a question about a deployment whose cluster is not on this engine.
func (r *Records) lost(what string, s *contract.Stored) error {
	fix := "install it again, with new secrets and without its data: slipway install; or forget it: slipway destroy"
	if r.inBucket {
		fix = "use the engine that has the cluster; if no engine has it any longer: " + fix
	}
	return &fault.Fault{Code: codeLost, Class: fault.Usage, Op: what, Err: errors.New(r.lostText() + lastRun(s.Record)), Fix: fix}
}

// lostText says why the cluster is not on this engine. Where the state is in a bucket, an
// engine that has removed its volume looks like an engine that never had it.
func (r *Records) lostText() string {
	if r.inBucket {
		return "the cluster of deployment " + r.name + " is not on this engine: another engine has it, or this one has removed its volume"
	}
	return "the engine has removed the cluster of deployment " + r.name + " with all data in it"
}

func lastRun(record *report.Run) string {
	if record == nil {
		return ""
	}
	return fmt.Sprintf("; its last run was %s %s of %s", record.Workflow, record.ID, record.Started.UTC().Format(time.RFC3339))
}

// checkOpened notes warnings about the state, or returns the fault of a run that cannot go on.
func (r *run) checkOpened(now contract.Opened) error {
	warn := func(text, fix string) { r.opened = append(r.opened, report.Warning{Summary: text, Fix: fix}) }
	install := r.workflow.Name == config.Install
	switch {
	case now.Lost && install:
		warn(r.lostText()+"; it is made anew here, with new secrets and without its data", "docs/state.md says how an engine keeps its volumes")
	case now.Lost && !r.workflow.Removes:
		return r.lost(r.workflow.Name+" the platform", &contract.Stored{})
	case now.Lost && r.inBucket:
		warn(r.lostText()+"; only the deployment's state is removed", "if another engine has the cluster, remove that engine, or its volumes")
	case now.First && install:
		if text, fix := r.onlyOnVolumes(); text != "" {
			warn(text, fix)
		}
	}
	return nil
}

// open has the run, which has the lock, find out what the state knows, and gives a deployment
// that has no identity one. Without the cluster only an install and a destroy go on.
func (r *run) open(ctx context.Context) error {
	if !contract.Installs(r.workflow.Name) && !r.workflow.Removes {
		return nil
	}
	e, entry := r.indexed(r.looking(containers.Exec{}))
	now, err := query(ctx, r.commands, e, contract.OpenState, contract.HeldInput{Who: r.who(), Deployment: r.name, Entry: entry})
	if err != nil {
		return err
	}
	r.past, r.steps.known = now.Phases, now.Known
	return r.checkOpened(now)
}

func (r *run) who() lock.Holder {
	return lock.Holder{User: r.opts.User, Host: r.opts.Host, Run: r.steps.requests.Run, Workflow: r.workflow.Name}
}

// onlyOnVolumes is the warning of a first install if something of the deployment is on the engine's
// volumes and nowhere else; empty if nothing is.
func (c *Conductor) onlyOnVolumes() (text, fix string) {
	const bucket = "to keep the state elsewhere, name a bucket in the configuration: state.url"
	on := " of deployment " + c.name + " is only on a volume of this Dagger engine"
	switch {
	case c.node && c.inBucket && c.opts.State.Key == nil:
		return "the key of the secrets" + on + ": without it, nothing reads the secrets in the bucket", "to keep the key elsewhere, give one: state.key in the configuration"
	case c.inBucket:
		return "", ""
	case c.node:
		return "the state" + on + ", as its cluster is: if the engine removes its volumes, the deployment is lost with all its data", bucket
	}
	return "the state" + on + ": if the engine removes it, the records of the runs and the backups are lost, and the next install needs --take-ownership", bucket
}
