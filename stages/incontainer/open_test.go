package incontainer

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// locked is a state of which a run has the lock.
func locked(t *testing.T, run string) *State {
	t.Helper()
	root := t.TempDir()
	s := &State{backend: state.Backend{Volume: root, Node: t.TempDir()}, store: volume(t, root), errw: io.Discard}
	_, lease, err := lock.New(s.store, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: run})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lease.Release(t.Context())) })
	return s
}

// opened is what run r1 finds.
func opened(t *testing.T, s *State) contract.Opened {
	t.Helper()
	out, err := s.open(t.Context(), contract.HeldInput{Who: lock.Holder{Run: "r1"}, Deployment: "demo"})
	require.NoError(t, err)
	return out
}

// identity is that of the deployment in s; empty while it has none.
func identity(t *testing.T, s *State) string {
	t.Helper()
	i, err := state.Identity(t.Context(), s.store)
	require.NoError(t, err)
	if i == nil {
		return ""
	}
	return i.ID
}

// TestTheStateIsOpened: a deployment gets its identity once.
func TestTheStateIsOpened(t *testing.T) {
	s := locked(t, "r1")
	open := func() contract.Opened {
		t.Helper()
		return opened(t, s)
	}
	_, err := s.open(t.Context(), contract.HeldInput{Who: lock.Holder{Run: "r2"}, Deployment: "demo"})
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	require.Empty(t, identity(t, s))
	require.Equal(t, contract.Opened{First: true}, open())
	first := identity(t, s)
	require.NotEmpty(t, first)
	require.NoError(t, state.PutRuntime(t.Context(), s.store, 1, contract.RuntimeState{Deployment: "demo"}))
	require.True(t, open().First, "no install has come to its end")
	require.NoError(t, state.PutRuntime(t.Context(), s.store, 1, contract.RuntimeState{Deployment: "demo", Platform: "1.0.0"}))
	require.False(t, open().First)
	require.Equal(t, first, identity(t, s))

	const destroy = "20260102-030405-a1b2c3"
	phases := []report.Phase{{Name: "Removal", Steps: []string{"infrastructure/node-remove"}}}
	record, err := (&report.Run{ID: destroy, Workflow: "destroy", Outcome: report.Succeeded, Phases: phases}).Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s.store, destroy, map[string][]byte{report.RecordFile: record}))
	require.NoError(t, state.PutLatest(t.Context(), s.store, 1, destroy))
	require.NoError(t, s.purge(t.Context(), contract.HeldInput{Who: lock.Holder{Run: "r1"}}))
	require.Equal(t, phases, open().Phases, "the next removal has no release that says so")
	require.NotEqual(t, first, identity(t, s), "it is another deployment now")
}

// TestALostClusterIsNoticed when the state is opened, and when it is read.
func TestALostClusterIsNoticed(t *testing.T) {
	s := locked(t, "r1")
	lost := func() bool {
		t.Helper()
		now := opened(t, s)
		stored, err := s.stored(t.Context())
		require.NoError(t, err)
		require.Equal(t, now.Lost, stored.Lost)
		return now.Lost
	}
	require.False(t, lost(), "there was none")
	require.NoError(t, s.store.Put(t.Context(), "secrets/kubeconfig", []byte("k")))
	require.True(t, lost())
	require.NoError(t, os.MkdirAll(filepath.Join(s.backend.Node, "pki"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.backend.Node, "pki/ca.crt"), nil, 0o600))
	require.False(t, lost())
}
