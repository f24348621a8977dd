package incontainer

import (
	"encoding/json"
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
	s := &State{place: state.Place{Volume: root, Node: t.TempDir()}, store: volume(t, root), errw: io.Discard}
	_, lease, err := lock.New(s.store, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: run})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lease.Release(t.Context())) })
	return s
}

// opened is what a command found that writes it to a file.
func opened(t *testing.T, do func(file string) error) contract.Opened {
	t.Helper()
	file := filepath.Join(t.TempDir(), "opened.json")
	require.NoError(t, do(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out contract.Opened
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// TestTheStateIsOpened: a deployment gets its identity once. Of one of which nothing is known,
// a copy has it.
func TestTheStateIsOpened(t *testing.T) {
	s := locked(t, "r1")
	open := func(copied bool) contract.Opened {
		t.Helper()
		return opened(t, func(file string) error {
			return s.Open(t.Context(), file, lock.Holder{Run: "r1"}, "demo", "", copied, true)
		})
	}
	require.ErrorIs(t, s.Open(t.Context(), "", lock.Holder{Run: "r2"}, "demo", "", false, true), &fault.Fault{Code: lock.CodeLost})
	require.Equal(t, contract.Opened{}, open(true))
	first := open(false)
	require.Equal(t, "demo", first.Identity.Name)
	require.Equal(t, first, open(true))

	// What a destroy left was not thrown away.
	const destroy = "20260102-030405-a1b2c3"
	phases := []report.Phase{{Name: "Removal", Steps: []string{"infrastructure/node-remove"}}}
	record, err := (&report.Run{ID: destroy, Workflow: "destroy", Outcome: report.Succeeded, Phases: phases}).Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s.store, destroy, map[string][]byte{report.RecordFile: record}))
	require.NoError(t, state.PutLatest(t.Context(), s.store, 1, destroy))
	require.NoError(t, s.Purge(t.Context(), "r1"))
	second := open(true)
	require.Equal(t, destroy, second.Last)
	require.True(t, second.Removed, "copies of it may go")
	require.Equal(t, phases, second.Phases, "the next removal has no release that says so")
	require.NotEqual(t, first.Identity.ID, second.Identity.ID)
	require.False(t, open(true).Removed, "it is another deployment now")
}

// TestAStateIsCopiedAndRestored, and says that the cluster is gone.
func TestAStateIsCopiedAndRestored(t *testing.T) {
	s := locked(t, "r1")
	record, err := (&report.Run{ID: "20260102-030405-a1b2c3", Workflow: "install", Outcome: report.Succeeded}).Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s.store, "20260102-030405-a1b2c3", map[string][]byte{report.RecordFile: record}))
	require.NoError(t, state.PutLatest(t.Context(), s.store, 1, "20260102-030405-a1b2c3"))
	require.NoError(t, s.store.Put(t.Context(), "secrets/kubeconfig", []byte("k")))
	require.NoError(t, os.MkdirAll(filepath.Join(s.place.Node, "pki"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.place.Node, "pki/ca.crt"), nil, 0o600))
	first := opened(t, func(file string) error {
		return s.Open(t.Context(), file, lock.Holder{Run: "r1"}, "demo", "", false, true)
	})
	require.False(t, first.Lost)
	dir := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, s.Copy(t.Context(), "r1", dir, ""))
	require.ErrorIs(t, s.Copy(t.Context(), "r2", dir, ""), &fault.Fault{Code: lock.CodeLost})
	var c contract.Copy
	text, err := os.ReadFile(filepath.Join(dir, contract.CopyFile))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c))
	require.Equal(t, "20260102-030405-a1b2c3", c.Stored.Record.ID)
	require.True(t, c.Stored.Cluster)
	require.Equal(t, first.Identity.ID, c.Stored.ID)

	fresh := locked(t, "r2")
	now := opened(t, func(file string) error { return fresh.Restore(t.Context(), file, lock.Holder{Run: "r2"}, dir, true) })
	require.Equal(t, first.Identity.ID, now.Identity.ID)
	require.Equal(t, 1, now.Identity.Restored)
	require.Equal(t, "20260102-030405-a1b2c3", now.Last)
	require.True(t, now.Lost)
	stored, err := fresh.stored(t.Context())
	require.NoError(t, err)
	require.True(t, stored.Lost)
	require.Equal(t, first.Identity.ID, stored.ID)
	require.Equal(t, report.Succeeded, stored.Record.Outcome)
}
