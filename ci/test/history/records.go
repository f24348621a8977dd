package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
	"github.com/slipway-sh/slipway/pipeline/store/versions"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Said is what a run has said of its steps.
type Said struct {
	Run   string   // its id; empty if it ended before it said that
	Steps []string // "stage/step" of each that had succeeded
}

// Records returns what the directory of a deployment's state tells of the runs since its last
// removal, as events, whose times are those of the machine's clock. Steps have the name
// "stage/step". An attempt that is the last one in the journal, or that a run has said to have
// succeeded, has an End. What needs no lock is left out.
func Records(ctx context.Context, dir, deployment string, said ...Said) (events []Event, err error) {
	s, err := store.Open(ctx, "file://"+filepath.ToSlash(dir), store.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r := records{store: s, ledger: journal.On(s, deployment), generations: map[string]int64{}, succeeded: map[made]journal.Attempt{}, ends: map[made]bool{}}
	if err := errors.Join(r.locks(ctx), r.attempts(ctx), r.last(ctx), r.values(dir)); err != nil {
		return nil, fmt.Errorf("read the records in %s: %w", dir, err)
	}
	for _, s := range said {
		r.said(s, said)
	}
	return r.events, nil
}

// records are the records of a deployment while they are read.
type records struct {
	store  *store.Store
	ledger *journal.Ledger

	removed     lock.Record      // of the last removal; zero: none is known
	since       time.Time        // when that was over
	generations map[string]int64 // of the lock since then, by run
	succeeded   map[made]journal.Attempt
	ends        map[made]bool // that are among the events
	events      []Event
}

// made is what a run did at a step.
type made struct{ run, step string }

func (r *records) add(e Event, at time.Time) {
	e.At = at.UnixNano()
	r.events = append(r.events, e)
}

// The kind and version with which package lock seals its records.
const (
	lockKind    = "lock"
	lockVersion = 1
)

func (r *records) locks(ctx context.Context) error {
	keys, err := r.store.List(ctx, "lock/")
	if err != nil {
		return err
	}
	var all []lock.Record
	for _, key := range keys {
		if strings.Count(key, "/") > 1 {
			continue // of those that broke another one there is a copy
		}
		data, err := r.store.Get(ctx, key)
		if err != nil {
			return err
		}
		var l lock.Record
		if err := seal.Open(data, lockKind, lockVersion, &l); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b lock.Record) int { return cmp.Compare(a.Generation, b.Generation) })
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Holder.Workflow == config.Destroy {
			r.removed, r.since, all = all[i], cmp.Or(all[i].Released, all[i].Beat), all[i+1:]
			break
		}
	}
	for _, l := range all {
		e := Event{Op: Take, Generation: l.Generation, Run: l.Holder.Run}
		if l.State == lock.Forced {
			e.Op = Force
		} else {
			r.generations[e.Run] = l.Generation
		}
		r.add(e, l.Acquired)
		if l.State == lock.Released {
			e.Op = Release
			r.add(e, l.Released)
		}
	}
	return nil
}

func (r *records) attempts(ctx context.Context) error {
	keys, err := r.store.List(ctx, "runs/")
	if err != nil {
		return err
	}
	var runs []string
	for _, key := range keys {
		run, _, _ := strings.Cut(strings.TrimPrefix(key, "runs/"), "/")
		runs = append(runs, run)
	}
	for _, run := range slices.Compact(runs) {
		if r.generations[run] == 0 && run < r.removed.Holder.Run { // ids sort by time
			continue
		}
		attempts, err := r.ledger.Run(ctx, run)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			// One that is only the last one in the journal has not ended.
			r.attempt(a, slices.Contains(keys, fmt.Sprintf("runs/%s/steps/%s.%s/attempt-%d.json", a.Run, a.Stage, a.Step, a.Number)))
		}
	}
	return nil
}

// event is one about an attempt.
func (r *records) event(op Op, a journal.Attempt) Event {
	return Event{Op: op, Generation: r.generations[a.Run], Run: a.Run, Step: a.Stage + "/" + a.Step, N: a.Number}
}

// counts reports whether an attempt is one under the lock, by a run after the last removal. A
// run that never had the lock has made none.
func (r *records) counts(a journal.Attempt) bool {
	return a.Stage+"/"+a.Step != contract.PreflightStep().String() &&
		(r.generations[a.Run] > 0 || a.Run != r.removed.Holder.Run && a.Started.After(r.since))
}

// attempt notes an attempt, and that it is found where it is one of the run's own records.
func (r *records) attempt(a journal.Attempt, own bool) {
	if !r.counts(a) || a.Status == journal.Reused {
		return
	}
	r.add(r.event(Begin, a), a.Started)
	switch e := r.event(Found, a); {
	case a.Status == journal.Failed:
		e.Op, e.Error = Fail, string(a.Fault.Code)
		r.add(e, a.Finished)
	case a.Status == journal.Succeeded && own:
		r.succeeded[made{e.Run, e.Step}] = a
		r.add(e, a.Finished)
	}
}

func (r *records) last(ctx context.Context) error {
	all, err := r.ledger.All(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !r.counts(a) {
			continue
		}
		r.add(r.event(Last, a), a.Started)
		if a.Status == journal.Succeeded {
			r.end(a)
		}
	}
	return nil
}

// end notes the end of an attempt that was acknowledged.
func (r *records) end(a journal.Attempt) {
	e := r.event(End, a)
	if key := (made{e.Run, e.Step}); !r.ends[key] {
		r.ends[key] = true
		r.add(e, a.Finished)
	}
}

// said notes the ends of attempts that a run has acknowledged. One that has not said which it
// is, is the first of which no other one has said so.
func (r *records) said(s Said, all []Said) {
	if s.Run == "" {
		s.Run = "unknown"
		for _, e := range of(r.events, Take) {
			if !slices.ContainsFunc(all, func(other Said) bool { return other.Run == e.Run }) {
				s.Run = e.Run
				break
			}
		}
	}
	for _, step := range s.Steps {
		if a, ok := r.succeeded[made{s.Run, step}]; ok {
			r.end(a)
			continue
		}
		// Nobody knows when. It was the first one, most likely.
		r.events = append(r.events, Event{Op: End, At: 1, Generation: r.generations[s.Run], Run: s.Run, Step: step, N: 1})
	}
}

// values notes when each value was stored that is of a generation.
func (r *records) values(dir string) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		key, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		key = filepath.ToSlash(key)
		g, ok := versions.Generation(key)
		if !ok || g <= r.removed.Generation || strings.HasPrefix(key, "lock/") {
			return nil
		}
		info, err := d.Info()
		if err == nil {
			r.add(Event{Op: Put, Generation: g, Step: key}, info.ModTime())
		}
		return err
	})
}
