package conductor

import (
	"context"
	"fmt"
	"io"

	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// DeploymentStatus is what `slipway status` shows.
type DeploymentStatus struct {
	Deployment string         `json:"deployment"`
	Provider   string         `json:"provider"`
	Platform   string         `json:"platform"` // version of the release
	Run        string         `json:"run"`      // id of the last run
	Workflow   string         `json:"workflow"` // of the last run
	Outcome    report.Outcome `json:"outcome"`  // of the last run
	State      string         `json:"state"`    // InProgress, Success or Failed, as in the cluster's ConfigMap slipway-system/slipway-status
	Steps      []report.Step  `json:"steps"`    // of the last run
	Apps       []report.App   `json:"apps"`     // as the last run saw them, or as they are now
	Links      []report.Link  `json:"links,omitempty"`
	Live       bool           `json:"live"` // Apps are as they are now
	// Elsewhere says that the cluster runs on another engine, where the state
	// is in a bucket: Apps are then as the last run saw them.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Text writes the status for a terminal.
func (s *DeploymentStatus) Text(w io.Writer) error {
	run := report.Run{
		ID: s.Run, Workflow: s.Workflow, Deployment: s.Deployment, Provider: s.Provider, Outcome: s.Outcome,
		Platform: report.Platform{Name: "platform", Version: s.Platform}, Steps: s.Steps, Apps: s.Apps, Links: s.Links,
	}
	err := run.Summary(w)
	switch {
	case err != nil || s.Live:
	case s.Elsewhere:
		_, err = fmt.Fprintln(w, "\nThe cluster runs on another engine: the applications are as the last run saw them.")
	default:
		_, err = fmt.Fprintln(w, "\nThe applications are as the last run saw them; use --live to check them now.")
	}
	return err
}

// Status shows the last run and the applications as it saw them or, with live, as they
// are now, which starts the cluster. An absent deployment is a fault of class Usage.
func (c *Conductor) Status(ctx context.Context, live bool) (*DeploymentStatus, error) {
	s, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.Records.status(s)
	if err != nil {
		return nil, err
	}
	out.Elsewhere = c.service != nil && !s.Here
	if !live || out.Elsewhere {
		return out, nil
	}
	err = c.while(ctx, func(ctx context.Context) error {
		var apps contract.Apps
		if _, err := c.runner(out.Run, nil).run(ctx, contract.StatusStep().Spec, contract.Nothing{}, &apps); err != nil {
			return err
		}
		out.Apps, out.Live = apps.Record(), true
		return nil
	})
	return out, err
}

// status is the status as far as the deployment's state knows it.
func (r *Records) status(s *contract.Stored) (*DeploymentStatus, error) {
	if s.Record == nil || !s.Cluster {
		return nil, r.notThere("show the status")
	}
	apps := s.Record.Apps
	if apps == nil {
		apps = []report.App{}
	}
	return &DeploymentStatus{
		Deployment: r.name, Provider: s.Record.Provider, Platform: s.Record.Platform.Version,
		Run: s.Record.ID, Workflow: s.Record.Workflow, Outcome: s.Record.Outcome, Steps: s.Record.Steps,
		State: stateOf(s.Record.Outcome),
		Apps:  apps, Links: s.Record.Links,
	}, nil
}

// stateOf is the outcome of a run in the words of those who look at the cluster.
func stateOf(o report.Outcome) string {
	switch o {
	case report.Running:
		return "InProgress"
	case report.Succeeded:
		return "Success"
	}
	return "Failed"
}
