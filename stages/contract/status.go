package contract

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// DeploymentStatus is what `slipway status` shows.
type DeploymentStatus struct {
	Deployment string         `json:"deployment"`
	Provider   string         `json:"provider"`
	Release    string         `json:"release,omitempty"` // name of the release of Run
	Platform   string         `json:"platform"`          // its version
	Run        string         `json:"run"`               // id of the last run that was not refused, if there is one
	Workflow   string         `json:"workflow"`          // of that run, as are Release, Platform, Steps and Links
	Outcome    report.Outcome `json:"outcome"`
	State      Progress       `json:"state"`
	// Installed is the version of the release that was installed to the end, if any: not
	// Platform after a run that came to no end.
	Installed string `json:"installed,omitempty"`
	// Refused is the last run, if it was refused before it had changed anything.
	Refused *Refusal `json:"refused,omitempty"`
	// Waiting is what the steps that run wait for.
	Waiting []Wait        `json:"waiting,omitempty"`
	Steps   []report.Step `json:"steps"`
	Apps    []report.App  `json:"apps"` // as the last run saw them, or as they are now
	Links   []report.Link `json:"links,omitempty"`
	Live    bool          `json:"live"` // Apps and Gates are as they are now
	// Gates are those of the components, looked at once; only if Live.
	Gates []Gate `json:"gates,omitempty"`
	// Elsewhere says that the cluster is not on this engine, where the state is in a bucket:
	// Apps are then as the last run saw them.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Text writes the status for a terminal.
func (s *DeploymentStatus) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", s.Deployment, s.State)
	if r := s.Refused; r != nil {
		fmt.Fprintf(&b, "the last run, %s %s, was refused, and changed nothing: %s: %s\n", r.Workflow, r.Run, r.Code, redact.OneLine(r.Error))
	}
	if s.State != NotStarted {
		if err := s.run(&b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *DeploymentStatus) run(b *strings.Builder) error {
	if s.Installed != "" && s.Installed != s.Platform {
		fmt.Fprintf(b, "the last run was for release %s; the last complete install is of release %s\n", s.Platform, s.Installed)
	}
	for _, a := range s.Waiting {
		fmt.Fprintf(b, "%s waits for %s since %s%s: %s\n", a.Step, a.For, a.Since.Format(time.TimeOnly), until(a), redact.OneLine(a.Seen))
	}
	run := report.Run{
		ID: s.Run, Workflow: s.Workflow, Deployment: s.Deployment, Provider: s.Provider, Outcome: s.Outcome,
		Platform: report.Platform{Name: s.Release, Version: s.Platform}, Steps: s.steps(), Apps: s.Apps, Links: s.Links,
	}
	err := run.Summary(b)
	switch {
	case s.Live:
	case s.State == Lost:
		b.WriteString("\nThe cluster is gone: the applications are as the last run saw them.\n")
	case s.Elsewhere:
		b.WriteString("\nThe cluster is not on this engine: the applications are as the last run saw them.\n")
	default:
		b.WriteString("\nThe applications are as the last run saw them; use --live to check them now.\n")
	}
	return err
}

// until says when a wait ends, in UTC as its beginning is.
func until(a Wait) string {
	if a.Until.IsZero() {
		return " UTC"
	}
	return ", until " + a.Until.Format(time.TimeOnly) + " UTC"
}

// steps are those of the run, with the gates that do not hold in their rows.
func (s *DeploymentStatus) steps() []report.Step {
	out := slices.Clone(s.Steps)
	for i := range out {
		for _, g := range s.Gates {
			if g.Step == out[i].ID() && !g.Open {
				out[i].Note += "; now gate " + g.Gate + " is shut: " + g.Seen
			}
		}
	}
	return out
}

// StatusOf is the status of a deployment of which s is stored.
func StatusOf(name string, s *Stored, inBucket bool) *DeploymentStatus {
	out := &DeploymentStatus{Deployment: name, State: NotStarted, Refused: s.Refused, Steps: []report.Step{}, Apps: []report.App{}}
	if s.Record == nil {
		return out
	}
	// Of a cluster that is not there yet, or not any more.
	begun := Installs(s.Record.Workflow) || s.Record.Workflow == config.Destroy && s.Record.Outcome != report.Succeeded
	begun = begun && (s.Refused == nil || s.Refused.Run != s.Record.ID)
	if s.Cluster || begun {
		out.Provider, out.Release, out.Platform = s.Record.Provider, s.Record.Platform.Name, s.Record.Platform.Version
		out.Run, out.Workflow, out.Outcome, out.Links = s.Record.ID, s.Record.Workflow, s.Record.Outcome, s.Record.Links
		out.Steps, out.Apps = append(out.Steps, s.Record.Steps...), append(out.Apps, s.Record.Apps...)
		out.Installed = s.Platform
		out.State, out.Waiting = progressOf(s.Record.Outcome), s.Waits
		if len(s.Waits) > 0 {
			out.State = Waiting
		}
	}
	if s.Lost && !inBucket && s.Record.Outcome != report.Running {
		out.State = Lost
	}
	return out
}

// progressOf is the outcome of a run in the words of those who look at the cluster.
func progressOf(o report.Outcome) Progress {
	switch o {
	case report.Running:
		return InProgress
	case report.Succeeded:
		return Success
	case report.Cancelled:
		return Cancelled
	case report.Interrupted:
		return Interrupted
	}
	return Failure
}

// DeploymentSummary is a deployment in what `slipway list` shows.
type DeploymentSummary struct {
	Deployment string    `json:"deployment"`
	Release    string    `json:"release,omitempty"`   // name of the release of Run
	Installed  string    `json:"installed,omitempty"` // version of the release that was installed to the end
	State      Progress  `json:"state,omitempty"`     // as its last run left it
	Run        string    `json:"run,omitempty"`       // id of the last run that was not refused
	Workflow   string    `json:"workflow,omitempty"`  // of that run
	Created    time.Time `json:"created,omitzero"`
	Problem    string    `json:"problem,omitempty"` // why its state cannot be read; only Deployment is set then
}

// SummaryOf is the line in a list of a deployment of which s is stored.
func SummaryOf(name string, created time.Time, s *Stored, inBucket bool) DeploymentSummary {
	out := DeploymentSummary{Deployment: name, Created: created, State: StatusOf(name, s, inBucket).State, Installed: s.Platform}
	if r := s.Record; r != nil {
		out.Release, out.Run, out.Workflow = r.Platform.Name, r.ID, r.Workflow
	}
	return out
}

// Installs reports whether a workflow brings a deployment to a release.
func Installs(workflow string) bool {
	return slices.Contains([]string{config.Install, config.Upgrade, config.Rollback}, workflow)
}

// Refuses reports whether an install in which a step failed has changed nothing yet: those of
// the stage infrastructure find out whether it may and can be.
func Refuses(stage string, err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && stage == StageInfrastructure && (f.Class == fault.Usage || f.Class == fault.Preflight)
}

// RefusalOf is why an install was refused before it had changed anything; nil for other runs.
func RefusalOf(r *report.Run) *Refusal {
	if !Installs(r.Workflow) || r.Outcome != report.Failed || r.Fault == nil {
		return nil
	}
	some := false
	for _, s := range r.Steps {
		if s.Status != pipeline.Failed {
			continue
		}
		if s.Fault == nil || !Refuses(s.Stage, s.Fault) {
			return nil
		}
		some = true
	}
	if !some {
		return nil
	}
	return &Refusal{Run: r.ID, Workflow: r.Workflow, Code: r.Fault.Code, Error: r.Fault.Error()}
}
