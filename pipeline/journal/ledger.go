// Package journal records every attempt at a step in the deployment's store, so that
// nothing is lost when a program is killed. Records are written atomically, and
// damaged ones are detected: their error is a *seal.Error.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
	"github.com/slipway-sh/slipway/pipeline/store/versions"
)

// Keys in a store, and the kind and version with which records are sealed.
const (
	latestPrefix = "journal/"
	runsPrefix   = "runs/"
	kind         = "journal"
	version      = 2
)

// Status is the state of an attempt at a step.
type Status string

// The statuses.
const (
	Running     Status = "running"     // or its program was killed and no later attempt has noticed
	Succeeded   Status = "succeeded"   //
	Failed      Status = "failed"      //
	Reused      Status = "reused"      // not run: an earlier output still holds
	Interrupted Status = "interrupted" // it left no result, which a later attempt noticed
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

// Attempt is one attempt at a step.
type Attempt struct {
	Deployment string          `json:"deployment"`
	Run        string          `json:"run"`
	Stage      string          `json:"stage"`
	Step       string          `json:"step"`
	Number     int             `json:"attempt"` // within the run, counted from 1
	Digests    Digests         `json:"digests"`
	Status     Status          `json:"status"`
	Output     json.RawMessage `json:"output,omitempty"` // if it succeeded
	Fault      *fault.Fault    `json:"fault,omitempty"`  // if it failed
	Started    time.Time       `json:"started"`
	Finished   time.Time       `json:"finished,omitzero"`
	From       string          `json:"from,omitempty"` // if it was reused: the run that produced the output
}

// Store is what a ledger needs of a store; store.Store is one.
type Store = versions.Store

// Ledger is the journal of a deployment in its store. The last attempt at each step
// is in journal/<stage>.<step>/<generation>.json, with the generation of the deployment's lock
// under which it is made; every attempt that has ended is also in its run's directory,
// runs/<run>/steps/<stage>.<step>/attempt-<n>.json.
//
// It is safe for concurrent use. The deployment's lock ensures that each step has
// one writer at a time; what an earlier holder still writes is below what the later has
// written.
type Ledger struct {
	store      Store
	fenced     Store // for what others read back
	generation int64
	deployment string
	clock      func() time.Time
}

// On returns the journal of a deployment in s, for reading, and for steps that need no lock.
// It does not access s.
func On(s Store, deployment string) *Ledger {
	return &Ledger{store: s, fenced: s, deployment: deployment, clock: time.Now}
}

// Under returns the journal for a step that works under the lock of a generation. The last
// attempt at the step is written through s, which refuses once the lock is lost; what goes to
// the directory of the step's own run is not.
func (l *Ledger) Under(generation int64, s Store) *Ledger {
	under := *l
	under.generation, under.fenced = generation, s
	return &under
}

// nameRE matches the names of stages and steps, which become part of keys.
var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// Name reports whether s is a valid name for a stage or a step.
func Name(s string) bool { return nameRE.MatchString(s) }

var runRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

func check(stage, step string) error {
	if !Name(stage) || !Name(step) {
		return fmt.Errorf("step %q of stage %q cannot be used in the name of a record", step, stage)
	}
	return nil
}

// latest is the last attempt at a step.
func latest(stage, step string) versions.Value {
	return versions.Value{Prefix: latestPrefix + stage + "." + step + "/", Suffix: ".json"}
}

func attemptPrefix(run, stage, step string) string {
	return runsPrefix + run + "/steps/" + stage + "." + step + "/attempt-"
}

func (a Attempt) key() string {
	return attemptPrefix(a.Run, a.Stage, a.Step) + strconv.Itoa(a.Number) + ".json"
}

// Begin records that an attempt at a step starts, before any work is done. When the
// error is nil the record survives a crash. An earlier attempt that was interrupted
// is marked as such in its run.
func (l *Ledger) Begin(ctx context.Context, run, stage, step string, d Digests) (Attempt, error) {
	if err := check(stage, step); err != nil {
		return Attempt{}, err
	}
	if !runRE.MatchString(run) {
		return Attempt{}, fmt.Errorf("run id %q cannot be used in the name of a record", run)
	}
	a := Attempt{Deployment: l.deployment, Run: run, Stage: stage, Step: step, Digests: d, Status: Running, Started: l.clock().UTC()}
	n, err := l.lastNumber(ctx, run, stage, step)
	if err != nil {
		return Attempt{}, err
	}
	last, err := l.Last(ctx, stage, step)
	_, damaged := errors.AsType[*seal.Error](err)
	switch {
	case err == nil && last.Status == Running:
		if err := l.interrupted(ctx, last); err != nil {
			return Attempt{}, err
		}
		if last.Run == run {
			n = max(n, last.Number)
		}
	case err == nil, errors.Is(err, fs.ErrNotExist), damaged:
	default:
		return Attempt{}, err
	}
	a.Number = n + 1
	return a, l.putLatest(ctx, a)
}

// interrupted records in a's run that it was interrupted, unless the run already
// holds its result.
func (l *Ledger) interrupted(ctx context.Context, a Attempt) error {
	_, err := l.get(ctx, a.key())
	_, damaged := errors.AsType[*seal.Error](err)
	if !damaged && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	a.Status = Interrupted
	return l.put(ctx, l.fenced, a.key(), a)
}

// End records how an attempt that Begin returned has ended: with an output or with a
// fault. When the error is nil the record survives a crash.
func (l *Ledger) End(ctx context.Context, a Attempt, output json.RawMessage, f *fault.Fault) error {
	a.Status, a.Output, a.Fault, a.Finished = Succeeded, output, nil, l.clock().UTC()
	if f != nil {
		a.Status, a.Output, a.Fault = Failed, nil, f
	}
	// The run's record comes first, because later runs reuse the other one.
	if err := l.put(ctx, l.store, a.key(), a); err != nil {
		return err
	}
	return l.putLatest(ctx, a)
}

// Resume returns the output of the last attempt at a step if it can be reused: the
// attempt succeeded with the same digests, and verify, which checks that the effects
// of the step are still in place, succeeds now. Otherwise why is the reason. The
// error is the store's, or verify's if ctx has ended.
func (l *Ledger) Resume(ctx context.Context, run, stage, step string, d Digests, verify func(context.Context, json.RawMessage) error) (output json.RawMessage, why string, err error) {
	started := l.clock().UTC()
	last, err := l.Last(ctx, stage, step)
	_, damaged := errors.AsType[*seal.Error](err)
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
		return nil, fmt.Sprintf("what attempt %d of run %s did does not hold any more: %v", last.Number, last.Run, err), nil
	}
	n, err := l.lastNumber(ctx, run, stage, step)
	if err != nil {
		return nil, "", err
	}
	reused := Attempt{Deployment: l.deployment, Run: run, Stage: stage, Step: step, Number: n + 1, Digests: d,
		Status: Reused, Output: last.Output, Started: started, Finished: l.clock().UTC(), From: last.Run}
	return last.Output, "", l.put(ctx, l.store, reused.key(), reused)
}

// unusable returns why a's output cannot be reused for digests d, or "" if the record
// allows it.
func (a Attempt) unusable(d Digests) string {
	at := fmt.Sprintf("attempt %d of run %s", a.Number, a.Run)
	if a.Status == Running {
		return at + " was interrupted: it started at " + a.Started.Format(time.RFC3339) + " and left no result"
	}
	if a.Status != Succeeded {
		s := at + " " + string(a.Status)
		if a.Fault != nil {
			s += fmt.Sprintf(" with %s", a.Fault.Code)
		}
		return s
	}
	if d.Input == "" || d.Release == "" || d.Tools == "" {
		return "a digest is missing"
	}
	if changed := a.Digests.Changed(d); len(changed) > 0 {
		verb := " have"
		if len(changed) == 1 && changed[0] != "tools" {
			verb = " has"
		}
		return "the " + strings.Join(changed, " and the ") + verb + " changed since " + at
	}
	return ""
}

// lastNumber returns the highest attempt number of a step in a run, including records
// that cannot be read.
func (l *Ledger) lastNumber(ctx context.Context, run, stage, step string) (int, error) {
	keys, err := l.store.List(ctx, attemptPrefix(run, stage, step))
	if err != nil {
		return 0, err
	}
	highest := 0
	for _, k := range keys {
		if m := attemptRE.FindStringSubmatch(k); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return 0, fmt.Errorf("%s: %w", k, err)
			}
			highest = max(highest, n)
		}
	}
	return highest, nil
}

func (l *Ledger) put(ctx context.Context, s Store, key string, a Attempt) error {
	data, err := sealed(key, a)
	if err != nil {
		return err
	}
	return s.Put(ctx, key, data)
}

// putLatest writes a as the last attempt at its step.
func (l *Ledger) putLatest(ctx context.Context, a Attempt) error {
	value := latest(a.Stage, a.Step)
	data, err := sealed(value.Key(l.generation), a)
	if err != nil {
		return err
	}
	return value.Put(ctx, l.fenced, l.generation, data)
}

func sealed(key string, a Attempt) ([]byte, error) {
	data, err := seal.Seal(kind, version, a)
	if err != nil {
		return nil, unusable(key, err)
	}
	return data, nil
}
