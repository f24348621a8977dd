package state_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

var lost = &fault.Fault{Code: lock.CodeLost}

// hold takes the lock of s for a run.
func hold(t *testing.T, s *store.Store, run string) *lock.Lease {
	t.Helper()
	_, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{User: "u", Host: "h", Run: run})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) }) // it may be lost
	return lease
}

// work begins work for a run that has the lock of s.
func work(t *testing.T, p state.Backend, s *store.Store, run string) (context.Context, *state.Work) {
	t.Helper()
	ctx, w, err := p.Work(t.Context(), s, run)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.End()) })
	return ctx, w
}

// takeAway takes the lock of s away from whoever has it, and gives it to a run.
func takeAway(t *testing.T, s *store.Store, run string) *lock.Lease {
	t.Helper()
	l := lock.New(s, lock.Options{Gone: func(lock.Holder) (func(), bool) { return func() {}, true }})
	_, lease, err := l.Acquire(t.Context(), lock.Holder{User: "v", Host: "i", Run: run})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lease.Release(context.WithoutCancel(t.Context()))) })
	return lease
}

// TestWork: who has lost the lock is told, and writes nothing more that others read.
func TestWork(t *testing.T) {
	root := t.TempDir()
	s, p := open(t, root), state.Backend{Volume: root}
	_, _, err := p.Work(t.Context(), s, "r1")
	require.ErrorIs(t, err, lost)
	hold(t, s, "r1")
	ctx, w := work(t, p, s, "r1")
	require.EqualValues(t, 1, w.Generation)
	require.NoError(t, w.Store.Put(ctx, "x", []byte("1")))
	require.NoError(t, w.Held(ctx))

	takeAway(t, s, "r2")
	require.ErrorIs(t, w.Store.Put(ctx, "x", []byte("2")), lost, "at once")
	require.ErrorIs(t, w.Held(ctx), lost)
	select {
	case <-ctx.Done():
	case <-time.After(3 * lock.DefaultBeat):
		t.Fatal("it is not told")
	}
	require.ErrorIs(t, context.Cause(ctx), lost)
	data, err := w.Store.Get(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, "1", string(data))
}

// TestGone: only where every process of a run has ended is it gone, and then none begins.
func TestGone(t *testing.T) {
	root := t.TempDir()
	s, p := open(t, root), state.Backend{Volume: root}
	gone := func() bool {
		done, gone := p.Gone("r1")
		if gone {
			done()
		}
		return gone
	}
	require.False(t, gone(), "nothing is known of it")
	end, err := p.Holds(t.Context(), "r1")
	require.NoError(t, err)
	hold(t, s, "r1")
	require.False(t, gone())
	_, w, err := p.Work(t.Context(), s, "r1")
	require.NoError(t, err)
	_, idle := p.Idle("r1")
	require.False(t, idle)
	require.NoError(t, end())
	require.False(t, gone(), "it works yet")
	child := exec.Command("sleep", "60") // which outlives who started it
	require.NoError(t, child.Start())
	require.NoError(t, w.End())
	require.False(t, gone(), "what it has started works yet")
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.True(t, gone())

	done, isGone := p.Gone("r1")
	require.True(t, isGone)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("it waits"))
	defer cancel()
	_, _, err = p.Work(ctx, s, "r1")
	require.ErrorContains(t, err, "it waits")
	done()
	_, w, err = p.Work(t.Context(), s, "r1")
	require.NoError(t, err)
	require.NoError(t, w.End())

	_, isGone = state.Backend{Volume: t.TempDir()}.Gone("r1")
	require.False(t, isGone, "another volume knows nothing")
	for _, bad := range []string{"", "..", "../r1"} {
		_, isGone = p.Gone(bad)
		require.False(t, isGone, bad)
		_, err := p.Holds(t.Context(), bad)
		require.Error(t, err, bad)
		_, _, err = p.Work(t.Context(), s, bad)
		require.Error(t, err, bad)
	}
	keys, err := s.List(t.Context(), "runs/")
	require.NoError(t, err)
	require.Empty(t, keys, "its files are no values")
}

// TestPurge_ofASleeper: a destroy that wakes up late removes nothing of who came after it.
func TestPurge_ofASleeper(t *testing.T) {
	for what, place := range map[string]func(t *testing.T) (state.Backend, *store.Store){
		"volume": func(t *testing.T) (state.Backend, *store.Store) {
			root := t.TempDir()
			return state.Backend{Volume: root}, open(t, root)
		},
		"bucket": func(t *testing.T) (state.Backend, *store.Store) { return machine(t, t.TempDir()) },
	} {
		t.Run(what, func(t *testing.T) {
			p, s := place(t)
			hold(t, s, "r1")
			ctx, w := work(t, p, s, "r1")
			require.NoError(t, s.Put(ctx, "journal/a.b/000000000001.json", []byte("1")))
			require.NoError(t, os.MkdirAll(filepath.Join(p.Volume, "secrets"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(p.Volume, "secrets/kubeconfig"), []byte("k"), 0o600))

			takeAway(t, s, "r2")
			require.NoError(t, s.Put(t.Context(), "journal/a.b/000000000002.json", []byte("2")))
			require.ErrorIs(t, state.Purge(context.WithoutCancel(ctx), p, w), lost)
			keys, err := s.List(t.Context(), "journal/")
			require.NoError(t, err)
			require.Equal(t, []string{"journal/a.b/000000000001.json", "journal/a.b/000000000002.json"}, keys)
			require.FileExists(t, filepath.Join(p.Volume, "secrets/kubeconfig"))

			// Even one that has looked before, and whose requests arrive now.
			blind := *w
			blind.Store = s
			err = state.Purge(context.WithoutCancel(ctx), p, &blind)
			require.ErrorIs(t, err, lost, "the volume is looked after on its own")
			keys, err = s.List(t.Context(), "journal/")
			require.NoError(t, err)
			require.Equal(t, []string{"journal/a.b/000000000002.json"}, keys)
		})
	}
}
