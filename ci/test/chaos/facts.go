package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// facts looks at the deployment, which is installed: at the cluster and the recorded state.
func (d *deployment) facts(ctx context.Context) (facts.Facts, error) {
	list, whose := []string{"--", "sh", "-ceu", facts.Script, "sh"}, "" // everything there is
	if !d.own {
		list, whose = append(list, "--show-managed-fields"), d.Name
	}
	text, err := slipway.Output(d.command(ctx, "toolchain", list...))
	if err != nil {
		return nil, err
	}
	f, err := facts.Objects(text, whose)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slipway-chaos-state-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the report: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rec, err := d.report(ctx, filepath.Join(dir, "report"))
	if err != nil {
		return nil, err
	}
	note(f, rec)
	state, err := os.ReadFile(filepath.Join(dir, "report", "state.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the runtime state: %w", err)
	}
	f["state.yaml"] = facts.WithoutChance(string(state))
	return f, nil
}

// done is what the facts say of a step that succeeded, in this run or in an earlier one.
const done = "done"

// note adds what the last run's record says to f: what was installed, and how each step
// ended.
func note(f facts.Facts, rec *report.Run) {
	f["platform"] = fmt.Sprint(rec.Platform.Name, " ", rec.Platform.Version, " ", rec.Platform.Digest)
	for _, s := range rec.Steps {
		if s.Stage == report.HooksStage {
			continue
		}
		f[stepFact(s.ID())] = string(s.Status)
		if s.Status.OK() {
			f[stepFact(s.ID())] = done
		}
	}
}

// stepFact is the name of the fact of a step, "stage/step".
func stepFact(id string) string { return "step " + id }

// hasStep reports whether an install with these facts has a step of that name.
func hasStep(f facts.Facts, id string) bool {
	_, ok := f[stepFact(id)]
	return ok
}
