package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// Last returns the last attempt at a step. The error is fs.ErrNotExist if there is
// none, and a *seal.Error if its record is not usable.
func (l *Ledger) Last(ctx context.Context, stage, step string) (Attempt, error) {
	if err := check(stage, step); err != nil {
		return Attempt{}, err
	}
	value := latest(stage, step)
	data, generation, err := value.Newest(ctx, l.store)
	if err != nil {
		return Attempt{}, err
	}
	return l.last(value.Key(generation), data, stage, step)
}

// among is Last, where the keys of the step's records are known.
func (l *Ledger) among(ctx context.Context, stage, step string, keys []string) (Attempt, error) {
	value := latest(stage, step)
	generation, _ := value.Among(keys)
	data, err := l.store.Get(ctx, value.Key(generation))
	if errors.Is(err, fs.ErrNotExist) { // there is a higher one since
		return l.Last(ctx, stage, step)
	}
	if err != nil {
		return Attempt{}, err
	}
	return l.last(value.Key(generation), data, stage, step)
}

// last is the last attempt at a step out of its record.
func (l *Ledger) last(key string, data []byte, stage, step string) (Attempt, error) {
	a, err := l.decode(key, data)
	if err == nil && (a.Stage != stage || a.Step != step) {
		err = unusable(key, seal.Foreign("it is of step %q", a.Stage+"/"+a.Step))
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
	steps := map[string][]string{}
	for _, k := range keys {
		if m := latestRE.FindStringSubmatch(k); m != nil {
			steps[m[1]] = append(steps[m[1]], k)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		stage, step, _ := strings.Cut(name, ".")
		if check(stage, step) != nil {
			continue
		}
		a, err := l.among(ctx, stage, step, steps[name])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, a)
	}
	return out, errors.Join(errs...)
}

var latestRE = regexp.MustCompile(`^` + latestPrefix + `([^/]+)/\d{12}\.json$`)

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
			err = unusable(k, seal.Foreign("it is that of %s", a.key()))
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

func (l *Ledger) get(ctx context.Context, key string) (Attempt, error) {
	data, err := l.store.Get(ctx, key)
	if err != nil {
		return Attempt{}, err
	}
	return l.decode(key, data)
}

// decode reads the record under key.
func (l *Ledger) decode(key string, data []byte) (Attempt, error) {
	var a Attempt
	if err := seal.Open(data, kind, version, &a); err != nil {
		return Attempt{}, unusable(key, err)
	}
	if a.Deployment != l.deployment {
		return Attempt{}, unusable(key, seal.Foreign("it is of deployment %q", a.Deployment))
	}
	return a, nil
}

func unusable(key string, err error) error { return fmt.Errorf("journal record %s: %w", key, err) }
