package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// Keys in a store, and the kind and version with which records are sealed. Version 1
// belongs to an earlier format, which this package does not read.
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
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte) error
	List(ctx context.Context, prefix string) ([]string, error)
}

// Ledger is the journal of a deployment in its store. The last attempt at each step
// is in journal/<stage>.<step>.json; every attempt that has ended is also in its
// run's directory, runs/<run>/steps/<stage>.<step>/attempt-<n>.json.
//
// It is safe for concurrent use. The deployment's lock ensures that each step has
// one writer at a time.
type Ledger struct {
	store      Store
	deployment string
	clock      func() time.Time
}

// On returns the journal of a deployment in s. It does not access s.
func On(s Store, deployment string) *Ledger { return &Ledger{s, deployment, time.Now} }

var runRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

func check(stage, step string) error {
	if !nameRE.MatchString(stage) || !nameRE.MatchString(step) {
		return fmt.Errorf("step %q of stage %q cannot be used in the name of a record", step, stage)
	}
	return nil
}

func latestKey(stage, step string) string { return latestPrefix + stage + "." + step + ".json" }

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
	_, damaged := errors.AsType[*RecordError](err)
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
	return a, l.put(ctx, latestKey(stage, step), a)
}

// interrupted records in a's run that it was interrupted, unless the run already
// holds its result.
func (l *Ledger) interrupted(ctx context.Context, a Attempt) error {
	_, err := l.get(ctx, a.key())
	_, damaged := errors.AsType[*RecordError](err)
	if !damaged && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	a.Status = Interrupted
	return l.putAttempt(ctx, a)
}

// End records how an attempt that Begin returned has ended: with an output or with a
// fault. When the error is nil the record survives a crash.
func (l *Ledger) End(ctx context.Context, a Attempt, output json.RawMessage, f *fault.Fault) error {
	a.Status, a.Output, a.Fault, a.Finished = Succeeded, output, nil, l.clock().UTC()
	if f != nil {
		a.Status, a.Output, a.Fault = Failed, nil, f
	}
	// The run's record comes first, because later runs reuse the other one.
	if err := l.putAttempt(ctx, a); err != nil {
		return err
	}
	return l.put(ctx, latestKey(a.Stage, a.Step), a)
}

// Resume returns the output of the last attempt at a step if it can be reused: the
// attempt succeeded with the same digests, and verify, which checks that the effects
// of the step are still in place, succeeds now. Otherwise why is the reason. The
// error is the store's, or verify's if ctx has ended.
func (l *Ledger) Resume(ctx context.Context, run, stage, step string, d Digests, verify func(context.Context, json.RawMessage) error) (output json.RawMessage, why string, err error) {
	started := l.clock().UTC()
	last, err := l.Last(ctx, stage, step)
	_, damaged := errors.AsType[*RecordError](err)
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
	return last.Output, "", l.putAttempt(ctx, reused)
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

// Last returns the last attempt at a step. The error is fs.ErrNotExist if there is
// none, and a *RecordError if its record is not usable.
func (l *Ledger) Last(ctx context.Context, stage, step string) (Attempt, error) {
	if err := check(stage, step); err != nil {
		return Attempt{}, err
	}
	key := latestKey(stage, step)
	a, err := l.get(ctx, key)
	if err == nil && (a.Stage != stage || a.Step != step) {
		err = &RecordError{key, seal.Foreign, fmt.Errorf("it is of step %q", a.Stage+"/"+a.Step)}
	}
	if err != nil {
		return Attempt{}, err
	}
	return a, nil
}

// All returns the last attempt at every step, sorted by stage and step. Unusable
// records are left out and listed in the error.
func (l *Ledger) All(ctx context.Context) ([]Attempt, error) {
	keys, err := l.store.List(ctx, latestPrefix)
	if err != nil {
		return nil, err
	}
	var out []Attempt
	var errs []error
	for _, k := range keys {
		name, isRecord := strings.CutSuffix(strings.TrimPrefix(k, latestPrefix), ".json")
		stage, step, _ := strings.Cut(name, ".")
		if !isRecord || check(stage, step) != nil {
			continue
		}
		a, err := l.Last(ctx, stage, step)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, a)
	}
	return out, errors.Join(errs...)
}

// Run returns the attempts of a run in the order in which they started. An attempt
// that is Running may belong to a program that was killed; only the deployment's lock
// shows whether it is alive. Unusable records are left out and listed in the error.
func (l *Ledger) Run(ctx context.Context, run string) ([]Attempt, error) {
	if !runRE.MatchString(run) {
		return nil, fmt.Errorf("run %q: %w", run, fs.ErrNotExist)
	}
	keys, err := l.store.List(ctx, runsPrefix+run+"/steps/")
	if err != nil {
		return nil, err
	}
	var out []Attempt
	var errs []error
	for _, k := range keys {
		if !attemptRE.MatchString(k) {
			continue
		}
		a, err := l.get(ctx, k)
		if err == nil && a.key() != k {
			err = &RecordError{k, seal.Foreign, fmt.Errorf("it is that of %s", a.key())}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, a)
	}
	last, err := l.All(ctx)
	errs = append(errs, err)
	for _, a := range last {
		same := func(b Attempt) bool { return b.key() == a.key() }
		if a.Run == run && !slices.ContainsFunc(out, same) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b Attempt) int { return a.Started.Compare(b.Started) })
	return out, errors.Join(errs...)
}

var attemptRE = regexp.MustCompile(`/attempt-([1-9][0-9]{0,8})\.json$`)

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

// putAttempt writes a into its run's directory.
func (l *Ledger) putAttempt(ctx context.Context, a Attempt) error { return l.put(ctx, a.key(), a) }

func (l *Ledger) put(ctx context.Context, key string, a Attempt) error {
	data, err := seal.Seal(kind, version, a)
	if err != nil {
		return fmt.Errorf("journal record %s: %w", key, err)
	}
	return l.store.Put(ctx, key, data)
}

func (l *Ledger) get(ctx context.Context, key string) (Attempt, error) {
	data, err := l.store.Get(ctx, key)
	if err != nil {
		return Attempt{}, err
	}
	var a Attempt
	if err := seal.Open(data, kind, version, &a); err != nil {
		e, _ := errors.AsType[*seal.Error](err)
		return Attempt{}, &RecordError{key, e.Reason, e.Err}
	}
	if a.Deployment != l.deployment {
		return Attempt{}, &RecordError{key, seal.Foreign, fmt.Errorf("it is of deployment %q", a.Deployment)}
	}
	return a, nil
}
