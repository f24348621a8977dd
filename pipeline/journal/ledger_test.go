package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/internal/faulty"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

const run1, run2 = "20260102-030405-a1b2c3", "20260103-030405-d4e5f6"

var digests = journal.Digests{Input: "sha256:in", Release: "sha256:rel", Tools: "sha256:tools"}

func memory(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://", store.Options{})
	require.NoError(t, err)
	return s
}

func begin(t *testing.T, l *journal.Ledger, run, step string) journal.Attempt {
	t.Helper()
	a, err := l.Begin(t.Context(), run, "infrastructure", step, digests)
	require.NoError(t, err)
	return a
}

func holds(context.Context, json.RawMessage) error { return nil }

func resume(t *testing.T, l *journal.Ledger, run, step string, d journal.Digests) (string, string) {
	t.Helper()
	out, why, err := l.Resume(t.Context(), run, "infrastructure", step, d, holds)
	require.NoError(t, err)
	return string(out), why
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		l := journal.On(s, "prod")
		_, err := l.Last(t.Context(), "infrastructure", "terraform")
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, why := resume(t, l, run1, "terraform", digests)
		require.Equal(t, "the journal has no record of the step", why)

		a := begin(t, l, run1, "terraform")
		last, err := l.Last(t.Context(), "infrastructure", "terraform")
		require.NoError(t, err)
		require.Equal(t, a, last, "it is written before the work starts")
		require.Equal(t, journal.Running, last.Status)
		require.Equal(t, 1, last.Number)
		require.Zero(t, last.Finished)

		time.Sleep(time.Minute)
		boom := &fault.Fault{Code: "INF-003", Class: fault.Step, Op: "apply", Fix: "again", Err: errors.New("boom")}
		require.NoError(t, l.End(t.Context(), a, json.RawMessage(`"not stored"`), boom))
		last, err = l.Last(t.Context(), "infrastructure", "terraform")
		require.NoError(t, err)
		require.Equal(t, journal.Failed, last.Status)
		require.Equal(t, "boom", last.Fault.Err.Error())
		require.Empty(t, last.Output)
		require.Equal(t, time.Minute, last.Finished.Sub(last.Started))
		_, why = resume(t, l, run1, "terraform", digests)
		require.Equal(t, "attempt 1 of run "+run1+" failed with INF-003", why)

		a = begin(t, l, run1, "terraform")
		require.Equal(t, 2, a.Number)
		require.NoError(t, l.End(t.Context(), a, json.RawMessage(`{"n":1,"s":"<&>"}`), nil))
		out, why := resume(t, l, run2, "terraform", digests)
		require.Empty(t, why)
		require.JSONEq(t, `{"n":1,"s":"<&>"}`, out)

		time.Sleep(time.Minute)
		a = begin(t, l, run2, "cluster")
		require.Equal(t, 1, a.Number)
		attempts, err := l.Run(t.Context(), run1)
		require.NoError(t, err)
		require.Len(t, attempts, 2)
		require.Equal(t, []journal.Status{journal.Failed, journal.Succeeded}, []journal.Status{attempts[0].Status, attempts[1].Status})
		attempts, err = l.Run(t.Context(), run2)
		require.NoError(t, err)
		require.Len(t, attempts, 2)
		require.Equal(t, journal.Reused, attempts[0].Status)
		require.Equal(t, run1, attempts[0].From)
		require.Equal(t, journal.Running, attempts[1].Status)
		all, err := l.All(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, "cluster", all[0].Step)
		require.Equal(t, run1, all[1].Run, "a reused attempt remains the last one")
		_, err = l.Run(t.Context(), "../up")
		require.ErrorIs(t, err, fs.ErrNotExist)
		attempts, err = l.Run(t.Context(), "unknown")
		require.NoError(t, err)
		require.Empty(t, attempts)
	})
}

// TestResume_onlyWhenAllHolds: digests, success and the postcondition, each by
// itself, decide.
func TestResume_onlyWhenAllHolds(t *testing.T) {
	l := journal.On(memory(t), "prod")
	a := begin(t, l, run1, "terraform")
	require.NoError(t, l.End(t.Context(), a, json.RawMessage(`1`), nil))
	at := "attempt 1 of run " + run1
	for _, c := range []struct {
		change func(*journal.Digests)
		why    string
	}{
		{func(d *journal.Digests) { d.Input = "x" }, "the input (settings and results of earlier steps) has changed since " + at},
		{func(d *journal.Digests) { d.Release = "x" }, "the platform release has changed since " + at},
		{func(d *journal.Digests) { d.Tools = "x" }, "the tools have changed since " + at},
		{func(d *journal.Digests) { d.Input, d.Tools = "x", "y" }, "the input (settings and results of earlier steps) and the tools have changed since " + at},
		{func(d *journal.Digests) { d.Input = "" }, "a digest is missing"},
		{func(d *journal.Digests) { *d = journal.Digests{} }, "a digest is missing"},
	} {
		d := digests
		c.change(&d)
		out, why := resume(t, l, run2, "terraform", d)
		require.Equal(t, c.why, why)
		require.Empty(t, out)
	}
	var saw string
	out, why, err := l.Resume(t.Context(), run2, "infrastructure", "terraform", digests, func(_ context.Context, out json.RawMessage) error {
		saw = string(out)
		return errors.New("the cluster is gone")
	})
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, "1", saw)
	require.Equal(t, "what "+at+" did does not hold any more: the cluster is gone", why)
	attempts, err := l.Run(t.Context(), run2)
	require.NoError(t, err)
	require.Empty(t, attempts)

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	_, _, err = l.Resume(ctx, run2, "infrastructure", "terraform", digests, func(ctx context.Context, _ json.RawMessage) error {
		cancel(stop)
		return ctx.Err()
	})
	require.ErrorIs(t, err, stop)
}

// TestBegin_afterAnInterruption: a record that says running at the start is one of
// an attempt that was interrupted, and is said and noted to be.
func TestBegin_afterAnInterruption(t *testing.T) {
	s := memory(t)
	l := journal.On(s, "prod")
	first := begin(t, l, run1, "terraform")
	_, why := resume(t, l, run2, "terraform", digests)
	require.Contains(t, why, "attempt 1 of run "+run1+" was interrupted: it started at "+first.Started.Format(time.RFC3339))
	second := begin(t, l, run1, "terraform")
	require.Equal(t, 2, second.Number)
	third := begin(t, l, run2, "terraform")
	require.Equal(t, 1, third.Number)
	attempts, err := l.Run(t.Context(), run1)
	require.NoError(t, err)
	require.Len(t, attempts, 2)
	for _, a := range attempts {
		require.Equal(t, journal.Interrupted, a.Status)
	}

	// Killed between the two records of its end: the run's own is right, and
	// the other one is not trusted.
	running, err := s.Get(t.Context(), "journal/infrastructure.terraform/000000000000.json")
	require.NoError(t, err)
	require.NoError(t, l.End(t.Context(), third, json.RawMessage(`3`), nil))
	require.NoError(t, s.Put(t.Context(), "journal/infrastructure.terraform/000000000000.json", running))
	_, why = resume(t, l, run2, "terraform", digests)
	require.Contains(t, why, "was interrupted")
	require.Equal(t, 2, begin(t, l, run2, "terraform").Number)
	attempts, err = l.Run(t.Context(), run2)
	require.NoError(t, err)
	require.Equal(t, journal.Succeeded, attempts[0].Status)
	require.Equal(t, journal.Running, attempts[1].Status)
}

func TestLedger_tornAndForeign(t *testing.T) {
	const key = "journal/infrastructure.terraform/000000000000.json"
	s := memory(t)
	l := journal.On(s, "prod")
	require.NoError(t, l.End(t.Context(), begin(t, l, run1, "terraform"), json.RawMessage(`{"n":1}`), nil))
	whole, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	unusable := func(data []byte, says string) {
		t.Helper()
		require.NoError(t, s.Put(t.Context(), key, data))
		_, err := l.Last(t.Context(), "infrastructure", "terraform")
		_, ok := errors.AsType[*seal.Error](err)
		require.True(t, ok, "%q: %v", data, err)
		require.ErrorContains(t, err, "journal record "+key)
		require.ErrorContains(t, err, says)
		out, why := resume(t, l, run2, "terraform", digests)
		require.Empty(t, out)
		require.Contains(t, why, key)
		all, err := l.All(t.Context())
		require.Empty(t, all)
		require.ErrorContains(t, err, key)
	}
	for i := range whole {
		unusable(whole[:i], "it is torn")
		altered := append([]byte(nil), whole...)
		altered[i] ^= 1
		unusable(altered, "it is ")
	}
	// Another step's, another deployment's, another program's.
	require.NoError(t, l.End(t.Context(), begin(t, l, run1, "cluster"), nil, nil))
	other, err := s.Get(t.Context(), "journal/infrastructure.cluster/000000000000.json")
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "journal/infrastructure.cluster/000000000000.json"))
	unusable(other, `it is of step "infrastructure/cluster"`)
	theirs := memory(t)
	staging := journal.On(theirs, "staging")
	require.NoError(t, staging.End(t.Context(), begin(t, staging, run1, "terraform"), nil, nil))
	foreign, err := theirs.Get(t.Context(), key)
	require.NoError(t, err)
	unusable(foreign, `it is of deployment "staging"`)
	unusable([]byte(`{"version":1,"sha256":"","record":{}}`+"\n"), "it is foreign: it is of kind")

	// The next attempt goes on from there.
	a := begin(t, l, run1, "terraform")
	require.Equal(t, 2, a.Number)
	require.NoError(t, l.End(t.Context(), a, json.RawMessage(`2`), nil))
	out, why := resume(t, l, run2, "terraform", digests)
	require.Equal(t, "2", out, why)

	// In a run's directory.
	history := "runs/" + run1 + "/steps/infrastructure.terraform/attempt-1.json"
	require.NoError(t, s.Put(t.Context(), history, whole[:20]))
	attempts, err := l.Run(t.Context(), run1)
	require.ErrorContains(t, err, history+": it is torn")
	require.Len(t, attempts, 2)
	right, err := s.Get(t.Context(), strings.Replace(history, "-1", "-2", 1))
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), history, right))
	_, err = l.Run(t.Context(), run1)
	require.ErrorContains(t, err, history+": it is foreign")
}

func TestLedger_names(t *testing.T) {
	l := journal.On(memory(t), "prod")
	for _, bad := range []string{"", "a.b", "../a", "A", "a/b", "-a"} {
		_, err := l.Begin(t.Context(), run1, bad, "x", digests)
		require.Error(t, err, bad)
		_, err = l.Last(t.Context(), "x", bad)
		require.Error(t, err, bad)
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a.b", ".hidden"} {
		_, err := l.Begin(t.Context(), bad, "a", "b", digests)
		require.Error(t, err, bad)
	}
}

// TestLedger_storeErrors: what the store says gets to the caller, and a record is
// never taken for absent because it could not be read.
func TestLedger_storeErrors(t *testing.T) {
	s := memory(t)
	bad := faulty.New(s, faulty.Plan{})
	l := journal.On(bad, "prod")
	a := begin(t, l, run1, "terraform")
	bad.Set(faulty.Plan{Error: 1})
	require.ErrorIs(t, l.End(t.Context(), a, nil, nil), faulty.ErrInjected)
	_, err := l.Begin(t.Context(), run1, "infrastructure", "terraform", digests)
	require.ErrorIs(t, err, faulty.ErrInjected)
	_, _, err = l.Resume(t.Context(), run1, "infrastructure", "terraform", digests, holds)
	require.ErrorIs(t, err, faulty.ErrInjected)
	_, err = l.Last(t.Context(), "infrastructure", "terraform")
	require.ErrorIs(t, err, faulty.ErrInjected)
	_, err = l.All(t.Context())
	require.ErrorIs(t, err, faulty.ErrInjected)
	_, err = l.Run(t.Context(), run1)
	require.ErrorIs(t, err, faulty.ErrInjected)
}

// TestLedger_generations: what a holder of the lock writes after it has lost it, however late,
// is below what the next one has written, and through a store that refuses it only its own run
// knows how it ended.
func TestLedger_generations(t *testing.T) {
	s := memory(t)
	d := digests
	plain := journal.On(s, "prod")
	old, err := plain.Begin(t.Context(), "r0", "a", "b", d)
	require.NoError(t, err)
	require.NoError(t, plain.End(t.Context(), old, json.RawMessage(`{"n":0}`), nil))
	last, err := plain.Last(t.Context(), "a", "b")
	require.NoError(t, err)
	require.Equal(t, "r0", last.Run)

	lost := errors.New("the lock is lost")
	var no error
	first := plain.Under(4, s.Fenced(func(context.Context) error { return no }))
	second := plain.Under(5, s)
	late, err := first.Begin(t.Context(), "r1", "a", "b", d)
	require.NoError(t, err)
	next, err := second.Begin(t.Context(), "r2", "a", "b", d)
	require.NoError(t, err)
	require.NoError(t, second.End(t.Context(), next, json.RawMessage(`{"n":2}`), nil))
	require.NoError(t, plain.Under(4, s).End(t.Context(), late, json.RawMessage(`{"n":1}`), nil), "it was checked before, and arrives late")
	no = lost
	require.ErrorIs(t, first.End(t.Context(), late, nil, &fault.Fault{Code: "ABC-001", Err: lost}), lost)
	_, err = first.Begin(t.Context(), "r1", "a", "b", d)
	require.ErrorIs(t, err, lost)

	for name, l := range map[string]*journal.Ledger{"who reads": plain, "first": first, "second": second} {
		out, why, err := l.Resume(t.Context(), "r3", "a", "b", d, holds)
		require.NoError(t, err, name)
		require.JSONEq(t, `{"n":2}`, string(out), "%s: %s", name, why)
		all, err := l.All(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, "r2", all[0].Run)
	}
	attempts, err := plain.Run(t.Context(), "r1")
	require.NoError(t, err)
	require.Len(t, attempts, 1)
	require.Equal(t, journal.Failed, attempts[0].Status, "its own run knows")
}
