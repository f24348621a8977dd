package state_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestWhichClusterItIs: a write that arrives after that of a later holder of the lock changes
// nothing.
func TestWhichClusterItIs(t *testing.T) {
	s := open(t, t.TempDir())
	is := func(uid string) {
		t.Helper()
		c, err := state.ClusterOf(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, uid, c.UID)
	}
	none, err := state.ClusterOf(t.Context(), s)
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, state.PutCluster(t.Context(), s, 5, state.Cluster{UID: "u5"}))
	is("u5")
	require.NoError(t, s.Put(t.Context(), "cluster/000000000004.json", []byte(`{"uid": "late"}`)))
	is("u5")
	require.NoError(t, state.PutCluster(t.Context(), s, 6, state.Cluster{UID: "u6"}))
	require.Equal(t, []string{"cluster/000000000006.json"}, slices.Collect(maps.Keys(all(t, s))))
}
