package incontainer

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// withRun makes s the state of a deployment with a run.
func withRun(t *testing.T, s *store.Store, name string) {
	t.Helper()
	const run = "20260102-030405-a1b2c3"
	r := &report.Run{ID: run, Workflow: "install", Started: time.Now(), Platform: report.Platform{Name: "shop", Version: "1.0.0"}}
	r.Plan([]pipeline.Node{{Key: pipeline.Key{Stage: "a", Name: "b"}}})
	r.Finish(nil, nil, time.Now())
	record, err := r.Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s, run, map[string][]byte{report.RecordFile: record}))
	require.NoError(t, state.PutLatest(t.Context(), s, 1, run))
	require.NoError(t, state.PutRuntime(t.Context(), s, 1, contract.RuntimeState{Deployment: name, Platform: "1.0.0"}))
	_, err = state.MakeIdentity(t.Context(), s, 1, name)
	require.NoError(t, err)
}

// TestDeploymentsAreListed from volumes and from a bucket: not those that were removed, and what
// cannot be read hides no other.
func TestDeploymentsAreListed(t *testing.T) {
	for _, remote := range []bool{false, true} {
		dir := t.TempDir()
		s := &State{backend: state.Backend{Volume: t.TempDir()}, errw: io.Discard}
		of := func(name string) *store.Store { return volume(t, filepath.Join(dir, name)) }
		if remote {
			s.backend.URL = "file://" + filepath.ToSlash(t.TempDir())
			bucket, err := s.backend.Open(t.Context())
			require.NoError(t, err)
			s.store = bucket
			of = func(name string) *store.Store {
				sub, err := bucket.Sub(name)
				require.NoError(t, err)
				return sub
			}
		}
		withRun(t, of("shop"), "shop")
		withRun(t, of("torn"), "torn")
		require.NoError(t, of("torn").Put(t.Context(), "latest/000000000002", []byte("..")))
		withRun(t, of("Not.A.Name"), "x")
		removed := of("removed")
		withRun(t, removed, "removed")
		keys, err := removed.List(t.Context(), "deployment/")
		require.NoError(t, err)
		for _, key := range keys {
			require.NoError(t, removed.Delete(t.Context(), key))
		}

		all, err := s.list(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, all, 2, remote)
		require.Equal(t, "shop", all[0].Deployment)
		require.WithinDuration(t, time.Now(), all[0].Created, time.Minute)
		require.Equal(t, []string{"1.0.0", "shop", "install"}, []string{all[0].Installed, all[0].Release, all[0].Workflow})
		require.Equal(t, "torn", all[1].Deployment)
		require.Contains(t, all[1].Problem, "latest/000000000002")
		require.Empty(t, all[1].State)
	}
}

// TestTheIndexOfAnEngine has a deployment from its first run until it is removed.
func TestTheIndexOfAnEngine(t *testing.T) {
	index := t.TempDir()
	s := locked(t, "r1")
	req := contract.HeldInput{Who: lock.Holder{Run: "r1"}, Deployment: "demo", Entry: filepath.Join(index, "demo")}
	names := func() []string {
		t.Helper()
		all, err := entries(index)
		require.NoError(t, err)
		return all
	}
	require.Empty(t, names())
	require.NoError(t, os.WriteFile(filepath.Join(index, "Not.A.Name"), nil, 0o600))
	for range 2 {
		_, err := s.open(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, []string{"demo"}, names())
	}
	for range 2 {
		require.NoError(t, s.purge(t.Context(), req))
		require.Empty(t, names())
	}
}
