package conductor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

const diagnosisLimit = time.Minute

// diagnose looks in the cluster for the cause of failures, a minute at most. It is nil if none of the
// failed steps works on the cluster. An error says why there is no diagnosis.
func diagnose(ctx context.Context, steps *containerRunner, g *stages.Graph, workflow string, failed []pipeline.Result) (*contract.Diagnosis, error) {
	in := diagnosisInput(g, failed)
	in.Refused = contract.Installs(workflow) && allRefuse(failed)
	if len(in.Failed) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosisLimit)
	defer cancel()
	var out contract.Diagnosis
	if _, err := steps.Run(ctx, contract.DiagnosisStep().Spec, in, &out); err != nil {
		return nil, fmt.Errorf("look for the cause in the cluster: %w", err)
	}
	return &out, nil
}

// note puts a diagnosis into the record of its run: as the cause of the failed step if only one failed.
// A missing diagnosis is a warning.
func note(record *report.Run, failed []pipeline.Result, d *contract.Diagnosis, err error) {
	switch {
	case err != nil:
		record.Warnings = append(record.Warnings, report.Warning{Summary: "there is no diagnosis: " + err.Error()})
		return
	case d == nil || !d.Known:
		return
	}
	var text strings.Builder
	_ = d.Text(&text) // a Builder takes everything
	found := report.Diagnosis{Summary: d.Cause, Details: strings.Split(strings.TrimSpace(text.String()), "\n")[1:]}
	for _, f := range d.Findings {
		if f.Sentence == d.Cause {
			found.App = f.App
		}
	}
	if len(failed) == 1 {
		found.Step = failed[0].String()
	}
	record.Diagnosis = append(record.Diagnosis, found)
}

// diagnosisInput has the failed steps that work on the cluster.
func diagnosisInput(g *stages.Graph, failed []pipeline.Result) contract.DiagnosisInput {
	in := contract.DiagnosisInput{Failed: []contract.FailedStep{}, Namespaces: []string{}}
	for _, r := range failed {
		if r.Status != pipeline.Failed || !g.Online(r.Key) && r.Key != contract.CheckEarlierSpec().Key {
			continue
		}
		s := contract.FailedStep{Stage: r.Stage, Step: r.Name}
		if r.Err != nil {
			s.Error = r.Err.Error()
		}
		if f, ok := errors.AsType[*fault.Fault](r.Err); ok {
			s.Code = f.Code
		}
		in.Failed = append(in.Failed, s)
	}
	if g.Release != nil {
		for _, n := range g.Release.Namespaces {
			in.Namespaces = append(in.Namespaces, n.Name)
		}
		if engine := g.Release.Engine(); engine != nil {
			in.Argo = engine.Namespace
		}
	}
	if g.Environment.OwnsNodes() {
		in.Health = contract.NodeHealth
	}
	return in
}

// allRefuse reports whether each step that failed refuses the run.
func allRefuse(results []pipeline.Result) bool {
	return !slices.ContainsFunc(results, func(r pipeline.Result) bool {
		return r.Status == pipeline.Failed && !contract.Refuses(r.Stage, r.Err)
	})
}

// BackedUp reports whether the run of an upgrade has come as far as its backup: only then is
// there something to go on with, or to go back from.
func BackedUp(r *report.Run) bool {
	return slices.ContainsFunc(r.Steps, func(s report.Step) bool {
		return s.ID() == contract.BackupStep().String() && s.Status.OK()
	})
}
