package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// volume is a state with some values, which a run has the lock of.
func volume(t *testing.T, run string, values map[string]string) (state.Backend, *store.Store, *state.Work) {
	t.Helper()
	p := state.Backend{Volume: t.TempDir()}
	s := open(t, p.Volume)
	for key, value := range values {
		require.NoError(t, s.Put(t.Context(), key, []byte(value)))
	}
	hold(t, s, run)
	_, w := work(t, p, s, run)
	return p, s, w
}

// all are the values of a store, by key.
func all(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	out := map[string]string{}
	for _, key := range keys {
		data, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		out[key] = string(data)
	}
	return out
}

// TestTheFirstIdentityStays: a late one of an earlier holder of the lock counts for nothing.
func TestTheFirstIdentityStays(t *testing.T) {
	_, s, _ := volume(t, "r9", nil)
	own, err := state.MakeIdentity(t.Context(), s, 5, "demo")
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "deployment/000000000004.json", []byte(`{"id":"late"}`)))
	now, err := state.Identity(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, own, now)
}

// TestAClusterIsLost with its volume, unless a destroy has emptied that, whatever ran since.
func TestAClusterIsLost(t *testing.T) {
	p, s, w := volume(t, "r1", nil)
	lost := func() bool {
		t.Helper()
		is, err := p.ClusterLost(t.Context(), s)
		require.NoError(t, err)
		return is
	}
	writeKubeconfig(t, p, "k")
	require.False(t, lost(), "the volume is not mounted")
	p.Node = t.TempDir()
	require.True(t, lost())
	text, err := (&report.Run{ID: "r1", Workflow: "destroy"}).Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s, "r1", map[string][]byte{report.RecordFile: text}))
	require.NoError(t, state.PutLatest(t.Context(), s, 1, "r1"))
	require.True(t, lost(), "a destroy that has removed no cluster is no reason")
	require.NoError(t, os.MkdirAll(filepath.Join(p.Node, "pki"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.Node, "pki/ca.crt"), nil, 0o600))
	require.False(t, lost())

	require.NoError(t, os.RemoveAll(filepath.Join(p.Node, "pki")))
	require.NoError(t, p.ForgetCluster(t.Context(), w))
	require.NoError(t, p.ForgetCluster(t.Context(), w), "again")
	require.False(t, lost(), "a destroy has emptied it")
}

// TestTheAccessToAClusterIsForgotten in a bucket, too, and only under the lock.
func TestTheAccessToAClusterIsForgotten(t *testing.T) {
	p, s := machine(t, t.TempDir())
	writeKubeconfig(t, p, "k")
	_, err := p.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	hold(t, s, "r1")
	_, w := work(t, p, s, "r1")
	require.NoError(t, p.ForgetCluster(t.Context(), w))
	known, err := p.HasKubeconfig(t.Context(), s)
	require.NoError(t, err)
	require.False(t, known)

	writeKubeconfig(t, p, "of the next run")
	takeAway(t, s, "r2")
	require.ErrorIs(t, p.ForgetCluster(t.Context(), w), lost)
	require.FileExists(t, filepath.Join(p.Volume, "secrets/kubeconfig"))
}

// TestAClusterIsOnAnotherEngine as far as one knows that shares the bucket, and whose volume is
// empty.
func TestAClusterIsOnAnotherEngine(t *testing.T) {
	a, s := machine(t, t.TempDir())
	a.Node = t.TempDir()
	writeKubeconfig(t, a, canary)
	_, err := a.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(a.Node, "pki"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(a.Node, "pki/ca.crt"), nil, 0o600))
	for _, p := range []state.Backend{a, {Volume: t.TempDir(), URL: a.URL, Node: t.TempDir()}} {
		lost, err := p.ClusterLost(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, p.Node != a.Node, lost)
	}
}
