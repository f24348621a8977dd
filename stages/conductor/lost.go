package conductor

import (
	"errors"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeLost: the engine has thrown away the volumes that the deployment was on.
const codeLost fault.Code = "DEP-010"

// looking is e with a look at the node's volume, where the cluster has one.
func (r *Records) looking(e containers.Exec) containers.Exec {
	if r.node {
		e.NodeDir = contract.NodeDirVariable
	}
	return e
}

// lost is the fault of a question about a deployment whose cluster is gone.
func (r *Records) lost(what string, s *contract.Stored) error {
	return &fault.Fault{
		Code: codeLost, Class: fault.Usage, Op: what, Err: errors.New(r.goneText(s)),
		Fix: "install it again, with the same secrets and without its data: slipway install; or, if it was saved, with them: slipway cluster --restore FILE; or forget it: slipway destroy; " + keeps,
	}
}

// keeps is the part of a remedy that is for the next time.
const keeps = "how an engine is made to keep deployments: slipway explain " + string(codeMayGo)

// goneText says what the engine has thrown away, and what is known of it.
func (r *Records) goneText(s *contract.Stored) string {
	return "the engine has thrown away the cluster of deployment " + r.name + " with all data in it" + lastRun(s.Record)
}

// lastRun names a run.
func lastRun(record *report.Run) string {
	if record == nil {
		return ""
	}
	return fmt.Sprintf("; its last run was %s %s of %s", record.Workflow, record.ID, record.Started.UTC().Format(time.RFC3339))
}

// judge says what is warned of after the state was opened, or returns the fault of a run that
// cannot go on.
func (r *run) judge(now contract.Opened) error {
	if from := now.From; from != nil {
		r.opened = append(r.opened, report.Warning{
			Summary: fmt.Sprintf("deployment %s is this engine's from now on; the cluster that run %s of %s made on another engine is left there", r.name, from.Run, from.By),
			Fix:     "if that engine is another one than this, and nothing else is on it: remove it, or its volumes",
		})
	}
	if !now.Lost || r.workflow.Removes {
		return nil
	}
	s := &contract.Stored{Lost: true}
	if r.workflow.Name != config.Install {
		return r.lost(r.workflow.Name+" the platform", s)
	}
	summary := r.goneText(s) + "; the cluster is made anew, with the same secrets and without its data"
	r.opened = append(r.opened, report.Warning{Summary: summary, Fix: keeps})
	return nil
}
