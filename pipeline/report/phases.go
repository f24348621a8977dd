package report

import (
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// Phase is a part of a run by the name under which users of the platform release know it.
// Phases may overlap, as their steps do.
type Phase struct {
	Name     string          `json:"name"`
	Approval bool            `json:"approval,omitempty"` // the phase is that somebody agrees to the run
	Steps    []string        `json:"steps,omitempty"`    // "stage/step" of its steps; those that only other runs have are among them
	Status   pipeline.Status `json:"status,omitempty"`   // made of those of its steps; missing when the run has nothing of it
	Started  time.Time       `json:"started,omitzero"`   // when its first step started, or somebody was asked; missing when it has not begun
	Finished time.Time       `json:"finished,omitzero"`  // when its last step ended, or somebody agreed; missing while it goes on
	Seconds  float64         `json:"seconds"`            // from its start to its end
}

// Consent is how somebody agrees to a run.
type Consent string

// The ways to agree.
const (
	OnTerminal Consent = "terminal"  // asked on a terminal, and answered yes
	ByYes      Consent = "--yes"     // on the command line, with --yes
	ByDigest   Consent = "--approve" // on the command line, with the digest of a plan
)

// Approval is that somebody has agreed to a run.
type Approval struct {
	How      Consent   `json:"how"`
	By       string    `json:"by"`               // user@machine
	Digest   string    `json:"digest,omitempty"` // of the plan that was shown or named: "sha256:…"
	Asked    time.Time `json:"asked,omitzero"`   // when the question was asked; missing when it was answered on the command line
	Answered time.Time `json:"answered"`         // when it was answered, or the command with the answer began
}

// words are "answered yes", "alice@desk on the terminal, 2026-01-02 03:04:05 UTC".
func (a *Approval) words() (how, about string) {
	how, about = string(a.How), a.By
	if a.How == OnTerminal {
		how, about = "answered yes", a.By+" on the terminal"
	}
	about += ", " + utc(a.Answered)
	if a.Digest != "" {
		about += ", plan " + a.Digest
	}
	return how, about
}

// Divide makes the planned steps parts of the phases that name them. It does not modify the steps
// of an earlier copy of the record.
func (r *Run) Divide(phases []Phase) {
	r.Phases, r.Steps = phases, slices.Clone(r.Steps)
	for i := range r.Steps {
		for _, p := range phases {
			if slices.Contains(p.Steps, r.Steps[i].ID()) {
				r.Steps[i].Phase = p.Name
			}
		}
	}
	r.Phases = r.phased()
}

// phased returns the phases as the steps and the approval are now.
func (r *Run) phased() []Phase {
	var out []Phase
	some := r.Approval != nil
	for _, p := range r.Phases {
		p = Phase{Name: p.Name, Approval: p.Approval, Steps: p.Steps}
		if of := r.stepsOf(p.Name); len(of) > 0 {
			p.complete(of)
			if p.Status == pipeline.Running && r.Outcome != Running {
				p.Status = pipeline.Interrupted
			}
			some = true
		}
		out = append(out, p)
	}
	for i := range out {
		switch p := &out[i]; {
		case !p.Approval || !some:
		case r.Approval == nil:
			p.Status = pipeline.Skipped
		default:
			p.Status, p.Started, p.Finished = pipeline.Succeeded, r.Approval.Answered, r.Approval.Answered
			if !r.Approval.Asked.IsZero() {
				p.Started = r.Approval.Asked
			}
			p.span()
		}
	}
	return out
}

func (r *Run) stepsOf(phase string) []*Step {
	var out []*Step
	for i := range r.Steps {
		if r.Steps[i].Phase == phase {
			out = append(out, &r.Steps[i])
		}
	}
	return out
}

// complete makes the result of a phase of those of its steps.
func (p *Phase) complete(of []*Step) {
	p.Status = combined(of)
	for _, s := range of {
		if s.Started.IsZero() {
			continue
		}
		if p.Started.IsZero() || s.Started.Before(p.Started) {
			p.Started = s.Started
		}
		if s.Finished.After(p.Finished) {
			p.Finished = s.Finished
		}
	}
	if p.Status == pipeline.Running || p.Status == pipeline.Interrupted {
		p.Finished = time.Time{}
	}
	p.span()
}

func (p *Phase) span() {
	if !p.Started.IsZero() && !p.Finished.IsZero() {
		p.Seconds = p.Finished.Sub(p.Started).Round(time.Millisecond).Seconds()
	}
}

// combined is the status of several steps together: the worst one. If some have ended and some
// have not started, it is Running.
func combined(of []*Step) pipeline.Status {
	has := map[pipeline.Status]bool{}
	for _, s := range of {
		has[s.Status] = true
	}
	for _, worst := range []pipeline.Status{
		pipeline.Failed, pipeline.Interrupted, pipeline.Cancelled, pipeline.Blocked, pipeline.Running, pipeline.Pending, pipeline.Warned,
	} {
		switch {
		case !has[worst]:
		case worst == pipeline.Pending && len(has) > 1:
			return pipeline.Running
		default:
			return worst
		}
	}
	for _, s := range []pipeline.Status{pipeline.Succeeded, pipeline.Reused, pipeline.Skipped} {
		if has[s] {
			return s
		}
	}
	return pipeline.Unselected
}

// shown are the phases that the run has something of.
func (r *Run) shown() []Phase {
	return slices.DeleteFunc(r.phased(), func(p Phase) bool { return p.Status == "" })
}

// result is how a phase has ended, in a few words, and what there is to say about that.
func (r *Run) result(p *Phase) (words, about string) {
	switch {
	case p.Approval && r.Approval == nil:
		return "nobody was asked", ""
	case p.Approval:
		return r.Approval.words()
	case p.Status == pipeline.Blocked:
		words, about = "not finished", "blocked by "+strings.Join(r.blockers(p), ", ")
	case p.Status == pipeline.Unselected:
		words = "not selected"
	default:
		words = string(p.Status)
	}
	switch {
	case !p.Started.IsZero() || p.Status.OK():
		return words, about
	case p.Status == pipeline.Pending:
		return notBegun, ""
	case about == "":
		about = words
	}
	return notBegun, about
}

const notBegun = "did not begin"

// blockers are the failed steps that kept steps of a phase from starting.
func (r *Run) blockers(p *Phase) []string {
	var out []string
	for _, s := range r.stepsOf(p.Name) {
		for _, id := range s.BlockedBy {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}
