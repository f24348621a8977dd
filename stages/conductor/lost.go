package conductor

import (
	"context"
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

// found is what is stored, completed by what the copies know of it.
type found struct {
	*contract.Stored
	// Copied says that the state is gone, too, and the rest from a copy.
	Copied bool
	// Engine has the deployment, as a copy says, and not this one; empty: nothing says so.
	Engine string
}

// gone reports whether the engine has thrown away what is asked for.
func (s *found) gone() bool { return s.Lost || s.Copied }

// looking is e with a look at the node's volume, where the cluster has one.
func (r *Records) looking(e containers.Exec) containers.Exec {
	if r.node {
		e.NodeDir = contract.NodeDirVariable
	}
	return e
}

// copied is the newest copy that was taken on this engine; nil if there is none.
func (r *Records) copied() (*Kept, error) {
	if r.copies == nil {
		return nil, nil
	}
	kept, err := r.copies.Newest()
	if err != nil || kept == nil || kept.Engine != "" {
		return nil, err
	}
	return kept, nil
}

// recall completes what is stored by what the copies know. A state without a record of a
// deployment that had one was thrown away.
func (r *Records) recall(s *contract.Stored) (*found, error) {
	out := &found{Stored: s}
	nothing := !r.inBucket && s.Record == nil && s.ID == "" && !s.Cluster
	if r.copies == nil || !nothing {
		return out, nil
	}
	kept, err := r.copies.Newest()
	switch {
	case err != nil || kept == nil:
	case kept.Engine != "":
		if kept.Stored.Cluster {
			out.Engine = kept.Engine
		}
	default:
		copied := kept.Stored
		copied.Lost, copied.Here, copied.Waits = copied.Cluster, false, nil
		if record := copied.Record; record != nil && record.Outcome == report.Running { // when it was copied
			ended := *record
			ended.Outcome = report.Interrupted
			copied.Record = &ended
		}
		out.Stored, out.Copied = &copied, true
	}
	return out, err
}

// there returns a fault if the state is gone, of which nothing was found: somebody asks what.
func (r *Records) there(ctx context.Context, what string) error {
	s, err := r.stored(ctx)
	if err == nil && s.Copied {
		err = r.lost(what, s)
	}
	return err
}

// lost is the fault of a question about a deployment whose cluster is gone.
func (r *Records) lost(what string, s *found) error {
	fix := "install it again, with the same secrets and without its data: slipway install; or forget it: slipway destroy; "
	if !r.node || !s.Lost {
		fix = "restore it from the copy on this machine: slipway install; or remove the deployment: slipway destroy; "
	}
	return &fault.Fault{Code: codeLost, Class: fault.Usage, Op: what, Err: errors.New(r.goneText(s)), Fix: fix + keeps}
}

// keeps is the part of a remedy that is for the next time.
const keeps = "how an engine is made to keep deployments: slipway explain " + string(codeMayGo)

// goneText says what the engine has thrown away, and what is known of it.
func (r *Records) goneText(s *found) string {
	what := "the cluster of deployment " + r.name + " with all data in it"
	switch {
	case s.Copied && (!r.node || !s.Lost):
		what = "the state of deployment " + r.name
	case s.Copied:
		what += ", and its state"
	}
	return "the engine has thrown away " + what + lastRun(s.Record)
}

// lastRun names a run.
func lastRun(record *report.Run) string {
	if record == nil {
		return ""
	}
	return fmt.Sprintf("; its last run was %s %s of %s", record.Workflow, record.ID, record.Started.UTC().Format(time.RFC3339))
}

// judge says what is warned of after the state was opened, or returns the fault of a run that
// cannot go on. restored says that the state was gone, too.
func (r *run) judge(now contract.Opened, restored bool) error {
	if from := now.From; from != nil {
		r.opened = append(r.opened, report.Warning{
			Summary: fmt.Sprintf("deployment %s is this engine's from now on; the cluster that run %s of %s made on another engine is left there", r.name, from.Run, from.By),
			Fix:     "if that engine is another one than this, and nothing else is on it: remove it, or its volumes",
		})
	}
	if !now.Lost && !restored {
		return nil
	}
	s := &found{Stored: &contract.Stored{Lost: now.Lost}, Copied: restored}
	if now.Lost && r.workflow.Name != config.Install && !r.workflow.Removes {
		return r.lost(r.workflow.Name+" the platform", s)
	}
	if r.workflow.Removes {
		return nil
	}
	summary := "the engine has thrown away the state of deployment " + r.name
	if now.Lost {
		summary = r.goneText(s)
	}
	if now.Last != "" {
		summary += "; its last run was " + now.Last
	}
	if restored {
		summary += "; the state was restored from a copy"
	}
	if now.Lost {
		summary += "; the cluster is made anew, with the same secrets and without its data"
	}
	r.opened = append(r.opened, report.Warning{Summary: summary, Fix: keeps})
	return nil
}
