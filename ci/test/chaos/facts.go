package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// facts describe a cluster and the recorded state: a name, and what was found
// under it without everything that differs from one clean install to the next.
type facts map[string]string

// facts looks at the deployment, which is installed.
func (d *deployment) facts(ctx context.Context) (facts, error) {
	list, whose := []string{"--", "sh", "-ceu", script, "sh"}, "" // everything there is
	if !d.own {
		list, whose = append(list, "--show-managed-fields"), d.Name
	}
	text, err := slipway.Output(d.command(ctx, "toolchain", list...))
	if err != nil {
		return nil, err
	}
	f, err := objects(text, whose)
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
	f.record(rec)
	state, err := os.ReadFile(filepath.Join(dir, "report", "state.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the runtime state: %w", err)
	}
	f["state.yaml"] = withoutChance(string(state))
	return f, nil
}

// done is what the facts say of a step that succeeded, in this run or in an earlier one.
const done = "done"

// record adds what the last run's record says: what was installed, and how each step
// ended.
func (f facts) record(rec *report.Run) {
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

// hasStep reports whether the install has a step of that name.
func (f facts) hasStep(id string) bool {
	_, ok := f[stepFact(id)]
	return ok
}

// compare names every difference.
func (f facts) compare(got facts) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(f)) {
		switch text, ok := got[name]; {
		case !ok:
			fmt.Fprintf(&b, "\n  %s is missing", name)
		case text != f[name]:
			fmt.Fprintf(&b, "\n  %s differs: %s", name, difference(f[name], text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := f[name]; !ok {
			fmt.Fprintf(&b, "\n  %s is there in addition", name)
		}
	}
	if b.Len() > 0 {
		return fmt.Errorf("it is not what a clean install makes:%s", b.String())
	}
	return nil
}

// difference shows where two texts part.
func difference(want, got string) string {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	from := max(0, at-40)
	return fmt.Sprintf("want …%s…, got …%s…", want[from:min(len(want), at+80)], got[from:min(len(got), at+80)])
}
