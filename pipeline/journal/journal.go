// Package journal records the last attempt at each step in the deployment's store, so that
// nothing is lost when a program is killed, and later runs need not repeat what holds. Records are
// written atomically, and damaged ones are detected: their error is a *store.RecordError.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Keys in a store, and the kind and version with which records are sealed.
const (
	prefix  = "journal/"
	kind    = "journal"
	version = 3
)

// Digests identify everything that a step's output depends on.
type Digests struct {
	Input   string `json:"input"`  // settings, and results of earlier steps
	Release string `json:"config"` // the platform release, if the step reads it
	Tools   string `json:"tools"`  // tools and images of the run
}

// Changed names the digests that differ from other's.
func (d Digests) Changed(other Digests) []string {
	var out []string
	for _, c := range []struct{ name, a, b string }{
		{"input (settings and results of earlier steps)", d.Input, other.Input},
		{"platform release", d.Release, other.Release}, {"tools", d.Tools, other.Tools},
	} {
		if c.a != c.b {
			out = append(out, c.name)
		}
	}
	return out
}

// Attempt is the last attempt at a step. An attempt that reused an earlier result is not recorded.
type Attempt struct {
	Deployment string  `json:"deployment"`
	Run        string  `json:"run"`
	Stage      string  `json:"stage"`
	Step       string  `json:"step"`
	Digests    Digests `json:"digests"`
	// Status is Running, Succeeded or Failed. It stays Running when the program was killed.
	Status   pipeline.Status `json:"status"`
	Output   json.RawMessage `json:"output,omitempty"` // if it succeeded
	Fault    *fault.Fault    `json:"fault,omitempty"`  // if it failed
	Started  time.Time       `json:"started"`
	Finished time.Time       `json:"finished,omitzero"`
}

// Ledger is the journal of a deployment in its store: journal/<stage>.<step>/<generation>.json,
// with the generation of the deployment's lock under which the attempt is made. What a run did is in
// its report.
//
// It is safe for concurrent use. The deployment's lock ensures that each step has
// one writer at a time; what an earlier holder still writes is below what the later has
// written.
type Ledger struct {
	store      store.Values
	generation int64
	deployment string
	clock      func() time.Time
}

// On returns the journal of a deployment in s, for reading, and for steps that need no lock.
// It does not access s.
func On(s store.Values, deployment string) *Ledger {
	return &Ledger{store: s, deployment: deployment, clock: time.Now}
}

// Under returns the journal for a step that works under the lock of a generation, in a store that
// refuses to write once the lock is lost.
func (l *Ledger) Under(generation int64, s store.Values) *Ledger {
	under := *l
	under.generation, under.store = generation, s
	return &under
}

// nameRE matches the names of stages and steps, which become part of keys.
var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// Name reports whether s is a valid name for a stage or a step.
func Name(s string) bool { return nameRE.MatchString(s) }

// recordOf is the record of a step.
func recordOf(stage, step string) (store.Versions, error) {
	if !Name(stage) || !Name(step) {
		return store.Versions{}, fmt.Errorf("step %q of stage %q cannot be used in the name of a record", step, stage)
	}
	return store.Versions{Prefix: prefix + stage + "." + step + "/", Suffix: ".json"}, nil
}

// Begin records that an attempt at a step starts, before any work is done. When the
// error is nil the record survives a crash.
func (l *Ledger) Begin(ctx context.Context, run, stage, step string, d Digests) (Attempt, error) {
	a := Attempt{Deployment: l.deployment, Run: run, Stage: stage, Step: step, Digests: d, Status: pipeline.Running, Started: l.clock().UTC()}
	return a, l.put(ctx, a)
}

// End records how an attempt that Begin returned has ended: with an output or with a
// fault. When the error is nil the record survives a crash.
func (l *Ledger) End(ctx context.Context, a Attempt, output json.RawMessage, f *fault.Fault) error {
	a.Status, a.Output, a.Fault, a.Finished = pipeline.Succeeded, output, nil, l.clock().UTC()
	if f != nil {
		a.Status, a.Output, a.Fault = pipeline.Failed, nil, f
	}
	return l.put(ctx, a)
}

func (l *Ledger) put(ctx context.Context, a Attempt) error {
	record, err := recordOf(a.Stage, a.Step)
	if err != nil {
		return err
	}
	data, err := store.Seal(kind, version, a)
	if err != nil {
		return unusable(record.Key(l.generation), err)
	}
	return record.Put(ctx, l.store, l.generation, data)
}

// Resume returns the output of the last attempt at a step if it can be reused: the
// attempt succeeded with the same digests, and verify, which checks that the effects
// of the step are still in place, succeeds now. Otherwise why is the reason. The
// error is the store's, or verify's if ctx has ended.
func (l *Ledger) Resume(ctx context.Context, stage, step string, d Digests, verify func(context.Context, json.RawMessage) error) (output json.RawMessage, why string, err error) {
	last, err := l.Last(ctx, stage, step)
	_, damaged := errors.AsType[*store.RecordError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "the journal has no record of the step", nil
	case damaged:
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	if why := last.unusable(d); why != "" {
		return nil, why, nil
	}
	if err := verify(ctx, last.Output); err != nil {
		if ctx.Err() != nil {
			return nil, "", fmt.Errorf("verify %s/%s: %w: %w", stage, step, context.Cause(ctx), err)
		}
		return nil, fmt.Sprintf("what run %s did does not hold any more: %v", last.Run, err), nil
	}
	return last.Output, "", nil
}

// unusable returns why a's output cannot be reused for digests d, or "" if the record
// allows it.
func (a Attempt) unusable(d Digests) string {
	switch {
	case a.Status == pipeline.Running:
		return "run " + a.Run + " was interrupted in the step: it started at " + a.Started.Format(time.RFC3339) + " and left no result"
	case a.Status != pipeline.Succeeded:
		why := "the step " + string(a.Status) + " in run " + a.Run
		if a.Fault != nil {
			why += fmt.Sprintf(" with %s", a.Fault.Code)
		}
		return why
	case d.Input == "" || d.Release == "" || d.Tools == "":
		return "a digest is missing"
	}
	if changed := a.Digests.Changed(d); len(changed) > 0 {
		return "since run " + a.Run + " this has changed: " + strings.Join(changed, ", ")
	}
	return ""
}

// Last returns the last attempt at a step. The error is fs.ErrNotExist if there is
// none, and a *store.RecordError if its record is not usable.
func (l *Ledger) Last(ctx context.Context, stage, step string) (Attempt, error) {
	record, err := recordOf(stage, step)
	if err != nil {
		return Attempt{}, err
	}
	data, generation, err := record.Newest(ctx, l.store)
	if err != nil {
		return Attempt{}, err
	}
	var a Attempt
	err = store.Unseal(data, kind, version, &a)
	switch {
	case err != nil:
	case a.Deployment != l.deployment:
		err = store.Foreign("it is of deployment %q", a.Deployment)
	case a.Stage != stage || a.Step != step:
		err = store.Foreign("it is of step %q", a.Stage+"/"+a.Step)
	}
	if err != nil {
		return Attempt{}, unusable(record.Key(generation), err)
	}
	return a, nil
}

func unusable(key string, err error) error { return fmt.Errorf("journal record %s: %w", key, err) }

// Steps returns the steps that have a record, "stage/step", sorted.
func (l *Ledger) Steps(ctx context.Context) ([]string, error) {
	keys, err := l.store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, key := range keys {
		stage, step, _ := strings.Cut(strings.Split(key, "/")[1], ".")
		record, err := recordOf(stage, step)
		if _, is := record.Of(key); is && err == nil {
			out = append(out, stage+"/"+step)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
