package state_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

func TestTheRuntimeStateHasAVersion(t *testing.T) {
	const key = "state/000000000001.yaml"
	s := open(t, t.TempDir())
	_, err := state.Runtime(t.Context(), s)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, state.CheckRuntime(t.Context(), s))
	for _, older := range []string{"deployment: d\n", "version: 0\ndeployment: d\n", "version: 1\ndeployment: d\n"} {
		require.NoError(t, s.Put(t.Context(), key, []byte(older)))
		got, err := state.Runtime(t.Context(), s)
		require.NoError(t, err, older)
		require.Equal(t, &contract.RuntimeState{Version: contract.RuntimeVersion, Deployment: "d"}, got)
	}
	require.NoError(t, s.Put(t.Context(), key, []byte("version: 99\nfromTheFuture: true\n")))
	for _, err := range []error{
		state.CheckRuntime(t.Context(), s), state.PutRuntime(t.Context(), s, 1, contract.RuntimeState{Deployment: "d"}),
	} {
		require.ErrorIs(t, err, &fault.Fault{Code: "RUN-009"})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, key+" has version 99; this program knows 1")
	}
	data, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	require.Contains(t, string(data), "fromTheFuture", "it is left as it is")
	for _, bad := range []string{"version: many\n", "version: 1.5\n", "version: -1\n", "version: 1\nother: x\n", "\t", "version: 1\ndeployment: &x d\nprovider: *x\n"} {
		require.NoError(t, s.Put(t.Context(), key, []byte(bad)))
		_, err := state.Runtime(t.Context(), s)
		require.ErrorContains(t, err, "decode state.yaml", bad)
		require.NoError(t, state.CheckRuntime(t.Context(), s), "the next run writes it anew")
	}
}

func TestAFailedRunForgetsNothing(t *testing.T) {
	s := open(t, t.TempDir())
	first := contract.RuntimeState{
		Deployment: "d", Provider: "local", Platform: "1.0.0", Run: "r1", Revision: "abc",
		Infrastructure: &contract.Infrastructure{APIEndpoint: "d"}, Access: &contract.Access{Commands: []string{"look"}},
	}
	require.NoError(t, state.PutRuntime(t.Context(), s, 1, first))
	require.NoError(t, state.PutRuntime(t.Context(), s, 2, contract.RuntimeState{
		Deployment: "d", Provider: "local", Run: "r2", Infrastructure: &contract.Infrastructure{APIEndpoint: "other"},
	}))
	got, err := state.Runtime(t.Context(), s)
	require.NoError(t, err)
	want := first
	want.Version, want.Run, want.Infrastructure = contract.RuntimeVersion, "r2", &contract.Infrastructure{APIEndpoint: "other"}
	require.Equal(t, &want, got)
	require.NoError(t, state.PutRuntime(t.Context(), s, 1, contract.RuntimeState{Deployment: "d", Run: "r1"}))
	got, err = state.Runtime(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, &want, got, "what an earlier holder of the lock writes late does not count")
}
