package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
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

func resume(t *testing.T, l *journal.Ledger, step string, d journal.Digests) (string, string) {
	t.Helper()
	out, why, err := l.Resume(t.Context(), "infrastructure", step, d, holds)
	require.NoError(t, err)
	return string(out), why
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		l := journal.On(s, "prod")
		_, err := l.Last(t.Context(), "infrastructure", "terraform")
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, why := resume(t, l, "terraform", digests)
		require.Equal(t, "the journal has no record of the step", why)

		a := begin(t, l, run1, "terraform")
		last, err := l.Last(t.Context(), "infrastructure", "terraform")
		require.NoError(t, err)
		require.Equal(t, a, last, "it is written before the work starts")
		require.Equal(t, pipeline.Running, last.Status)
		require.Zero(t, last.Finished)

		time.Sleep(time.Minute)
		boom := &fault.Fault{Code: "INF-003", Class: fault.Step, Op: "apply", Fix: "again", Err: errors.New("boom")}
		require.NoError(t, l.End(t.Context(), a, json.RawMessage(`"not stored"`), boom))
		last, err = l.Last(t.Context(), "infrastructure", "terraform")
		require.NoError(t, err)
		require.Equal(t, pipeline.Failed, last.Status)
		require.Equal(t, "boom", last.Fault.Err.Error())
		require.Empty(t, last.Output)
		require.Equal(t, time.Minute, last.Finished.Sub(last.Started))
		_, why = resume(t, l, "terraform", digests)
		require.Equal(t, "the step failed in run "+run1+" with INF-003", why)

		a = begin(t, l, run1, "terraform")
		require.NoError(t, l.End(t.Context(), a, json.RawMessage(`{"n":1,"s":"<&>"}`), nil))
		out, why := resume(t, l, "terraform", digests)
		require.Empty(t, why)
		require.JSONEq(t, `{"n":1,"s":"<&>"}`, out)

		time.Sleep(time.Minute)
		begin(t, l, run2, "cluster")
		steps, err := l.Steps(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"infrastructure/cluster", "infrastructure/terraform"}, steps)
		last, err = l.Last(t.Context(), "infrastructure", "terraform")
		require.NoError(t, err)
		require.Equal(t, run1, last.Run, "a reused attempt remains the last one")
	})
}

// TestResume_onlyWhenAllHolds: digests, success and the postcondition, each by
// itself, decide.
func TestResume_onlyWhenAllHolds(t *testing.T) {
	l := journal.On(memory(t), "prod")
	a := begin(t, l, run1, "terraform")
	require.NoError(t, l.End(t.Context(), a, json.RawMessage(`1`), nil))
	since := "since run " + run1 + " this has changed: "
	for _, c := range []struct {
		change func(*journal.Digests)
		why    string
	}{
		{func(d *journal.Digests) { d.Input = "x" }, since + "input (settings and results of earlier steps)"},
		{func(d *journal.Digests) { d.Release = "x" }, since + "platform release"},
		{func(d *journal.Digests) { d.Tools = "x" }, since + "tools"},
		{func(d *journal.Digests) { d.Input, d.Tools = "x", "y" }, since + "input (settings and results of earlier steps), tools"},
		{func(d *journal.Digests) { d.Input = "" }, "a digest is missing"},
		{func(d *journal.Digests) { *d = journal.Digests{} }, "a digest is missing"},
	} {
		d := digests
		c.change(&d)
		out, why := resume(t, l, "terraform", d)
		require.Equal(t, c.why, why)
		require.Empty(t, out)
	}
	var saw string
	out, why, err := l.Resume(t.Context(), "infrastructure", "terraform", digests, func(_ context.Context, out json.RawMessage) error {
		saw = string(out)
		return errors.New("the cluster is gone")
	})
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, "1", saw)
	require.Equal(t, "what run "+run1+" did does not hold any more: the cluster is gone", why)

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	_, _, err = l.Resume(ctx, "infrastructure", "terraform", digests, func(ctx context.Context, _ json.RawMessage) error {
		cancel(stop)
		return ctx.Err()
	})
	require.ErrorIs(t, err, stop)
}

// TestBegin_afterAnInterruption: a record that says running at the start is one of
// an attempt that was interrupted, and is said to be.
func TestBegin_afterAnInterruption(t *testing.T) {
	s := memory(t)
	l := journal.On(s, "prod")
	first := begin(t, l, run1, "terraform")
	_, why := resume(t, l, "terraform", digests)
	require.Equal(t, "run "+run1+" was interrupted in the step: it started at "+first.Started.Format(time.RFC3339)+" and left no result", why)
	second := begin(t, l, run2, "terraform")
	require.NoError(t, l.End(t.Context(), second, json.RawMessage(`2`), nil))
	out, why := resume(t, l, "terraform", digests)
	require.Equal(t, "2", out, why)
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
		_, ok := errors.AsType[*store.RecordError](err)
		require.True(t, ok, "%q: %v", data, err)
		require.ErrorContains(t, err, "journal record "+key)
		require.ErrorContains(t, err, says)
		out, why := resume(t, l, "terraform", digests)
		require.Empty(t, out)
		require.Contains(t, why, key)
	}
	for i := range whole {
		if i < len(whole)-1 { // the line break at its end says nothing
			unusable(whole[:i], "it is torn")
		}
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
	require.NoError(t, l.End(t.Context(), a, json.RawMessage(`2`), nil))
	out, why := resume(t, l, "terraform", digests)
	require.Equal(t, "2", out, why)
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
}

// TestLedger_generations: what a holder of the lock writes after it has lost it, however late,
// is below what the next one has written.
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
		out, why, err := l.Resume(t.Context(), "a", "b", d, holds)
		require.NoError(t, err, name)
		require.JSONEq(t, `{"n":2}`, string(out), "%s: %s", name, why)
		last, err := l.Last(t.Context(), "a", "b")
		require.NoError(t, err)
		require.Equal(t, "r2", last.Run)
	}
}
