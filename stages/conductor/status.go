package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeUnhealthy: an application or a gate of the platform is not as it should be.
const codeUnhealthy fault.Code = "DEP-016"

// DeploymentStatus is what `slipway status` shows.
type DeploymentStatus struct {
	Deployment string            `json:"deployment"`
	Provider   string            `json:"provider"`
	Release    string            `json:"release,omitempty"` // name of the release of Run
	Platform   string            `json:"platform"`          // its version
	Run        string            `json:"run"`               // id of the last run that was not refused, if there is one
	Workflow   string            `json:"workflow"`          // of that run, as are Release, Platform, Steps and Links
	Outcome    report.Outcome    `json:"outcome"`
	State      contract.Progress `json:"state"`
	// Installed is the version of the release that was installed to the end, if any: not
	// Platform after a run that came to no end.
	Installed string `json:"installed,omitempty"`
	// Refused is the last run, if it was refused before it had changed anything.
	Refused *contract.Refusal `json:"refused,omitempty"`
	// Waiting is what the steps that run wait for.
	Waiting []contract.Wait `json:"waiting,omitempty"`
	Steps   []report.Step   `json:"steps"`
	Apps    []report.App    `json:"apps"` // as the last run saw them, or as they are now
	Links   []report.Link   `json:"links,omitempty"`
	Live    bool            `json:"live"` // Apps and Gates are as they are now
	// Gates are those of the components, looked at once; only if Live.
	Gates []contract.Gate `json:"gates,omitempty"`
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
	if s.State != contract.NotStarted {
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
	case s.State == contract.Lost:
		b.WriteString("\nThe cluster is gone: the applications are as the last run saw them.\n")
	case s.Elsewhere:
		b.WriteString("\nThe cluster is not on this engine: the applications are as the last run saw them.\n")
	default:
		b.WriteString("\nThe applications are as the last run saw them; use --live to check them now.\n")
	}
	return err
}

// until says when a wait ends, in UTC as its beginning is.
func until(a contract.Wait) string {
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

// Status shows the last run and the applications as it saw them or, with live, as they
// are now, which starts the cluster. An absent deployment is a fault of class Usage, one that
// is not healthy now a fault of class Step, beside its status.
func (c *Conductor) Status(ctx context.Context, live bool) (*DeploymentStatus, error) {
	s, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.Records.status(s)
	if err != nil {
		return out, err
	}
	out.Elsewhere = s.Lost
	if !live || out.Elsewhere || !s.Cluster {
		return out, nil
	}
	in, err := c.live(s.Record)
	if err != nil {
		return out, err
	}
	err = c.while(ctx, func(ctx context.Context) error {
		if c.service != nil { // it may have been started for this
			if err := c.awaitPods(ctx, c.service.Service()); err != nil {
				return err
			}
		}
		var now contract.Live
		if _, err := c.runner(out.Run, nil).Run(ctx, contract.StatusStep().Spec, in, &now); err != nil {
			return err
		}
		out.Apps, out.Gates, out.Live = append(out.Apps[:0], now.Apps.Apps...), now.Gates, true
		return nil
	})
	if err == nil {
		err = out.unhealthy()
	}
	return out, err
}

// live is what to look at: gates only if the caller has the last run's release.
func (c *Conductor) live(record *report.Run) (contract.LiveInput, error) {
	in := contract.LiveInput{Components: []contract.LiveComponent{}}
	r, want := c.opts.Release, record.Platform
	if r == nil || want.Digest != c.opts.ReleaseDigest {
		if want.Digest != "" && c.opts.Warn != nil {
			c.opts.Warn(fmt.Sprintf("the gates of components are not checked: the last run was of platform release %s %s, %s, which is not the one at hand; name its directory: slipway status --live --platform DIR",
				redact.OneLine(want.Name), redact.OneLine(want.Version), redact.OneLine(want.Digest)))
		}
		return in, nil
	}
	if engine := r.Engine(); engine != nil {
		in.Engine = engine.Namespace
	}
	for _, s := range record.Steps {
		component, _ := r.Component(s.Step)
		if s.Stage != contract.StagePreOrchestrator && s.Stage != contract.StageOrchestrator || len(component.Ready) == 0 {
			continue
		}
		ready, err := json.Marshal(component.Ready)
		if err != nil {
			return in, fmt.Errorf("encode the gates of %s: %w", s.ID(), err)
		}
		in.Components = append(in.Components, contract.LiveComponent{Step: s.ID(), Ready: ready})
	}
	return in, nil
}

// unhealthy is the fault of Apps and Gates that are not as they should be; nil if all are.
func (s *DeploymentStatus) unhealthy() error {
	var wrong []string
	for _, a := range s.Apps {
		if !a.OK() {
			wrong = append(wrong, strings.TrimSuffix(fmt.Sprintf("app %s is %s and %s: %s", a.Name, a.Sync, a.Health, a.Cause), ": "))
		}
	}
	for _, g := range s.Gates {
		if !g.Open {
			wrong = append(wrong, fmt.Sprintf("gate %s of %s is shut: %s", g.Gate, g.Step, g.Seen))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeUnhealthy, Class: fault.Step, Op: "check the platform as it is now", Err: errors.New(report.Clean(strings.Join(wrong, "\n"))),
		Fix: "wait a minute for what has just started, and check again; to revert manual changes and see why something is not healthy: slipway install, or dagger call install",
	}
}

// status is the status that the state knows, with a fault if the deployment is not there.
func (r *Records) status(s *contract.Stored) (*DeploymentStatus, error) {
	out := &DeploymentStatus{Deployment: r.name, State: contract.NotStarted, Refused: s.Refused, Steps: []report.Step{}, Apps: []report.App{}}
	const what = "show the status"
	if s.Record == nil {
		return out, r.notThere(what)
	}
	// Of a cluster that is not there yet, or not any more.
	begun := installs(s.Record.Workflow) || s.Record.Workflow == config.Destroy && s.Record.Outcome != report.Succeeded
	begun = begun && (s.Refused == nil || s.Refused.Run != s.Record.ID)
	if s.Cluster || begun {
		out.Provider, out.Release, out.Platform = s.Record.Provider, s.Record.Platform.Name, s.Record.Platform.Version
		out.Run, out.Workflow, out.Outcome, out.Links = s.Record.ID, s.Record.Workflow, s.Record.Outcome, s.Record.Links
		out.Steps, out.Apps = append(out.Steps, s.Record.Steps...), append(out.Apps, s.Record.Apps...)
		out.Installed = s.Platform
		out.State, out.Waiting = stateOf(s.Record.Outcome), s.Waits
		if len(s.Waits) > 0 {
			out.State = contract.Waiting
		}
	}
	if again := s.Record.Outcome == report.Running; s.Lost && !r.inBucket && !again {
		out.State = contract.Lost
		return out, r.lost(what, s)
	}
	if !s.Cluster && (!begun || s.Record.Outcome != report.Running) {
		return out, r.notThere(what)
	}
	return out, nil
}

// stateOf is the outcome of a run in the words of those who look at the cluster.
func stateOf(o report.Outcome) contract.Progress {
	switch o {
	case report.Running:
		return contract.InProgress
	case report.Succeeded:
		return contract.Success
	case report.Cancelled:
		return contract.Cancelled
	case report.Interrupted:
		return contract.Interrupted
	}
	return contract.Failure
}
