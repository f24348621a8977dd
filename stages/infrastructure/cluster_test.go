package infrastructure

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestTheAccessIsKept: a look says that it is not there yet and keeps nothing.
func TestTheAccessIsKept(t *testing.T) {
	env := step.NewEnv("r1", "infrastructure/cluster", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
	require.NoError(t, keep(t.Context(), env, false), "it is in the store already, which is the volume")

	env = step.NewEnv("r1", "infrastructure/cluster", step.Dirs{State: env.StateDir}, io.Discard, io.Discard)
	env.Backend = state.Backend{Volume: env.StateDir, URL: "s3://bucket", MakeKey: true, Openers: map[string]store.Opener{"s3": memory{}}}
	require.ErrorContains(t, keep(t.Context(), env, false), "read the kubeconfig")
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	require.NoError(t, os.WriteFile(env.Kubeconfig, []byte("c4nary"), 0o600))
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	there := func() bool {
		keys, err := s.List(t.Context(), "secrets/")
		require.NoError(t, err)
		return len(keys) == 1
	}
	p := plan.Verify("cluster")
	require.NoError(t, keep(t.Context(), env.Planned(p), false))
	require.ErrorContains(t, p.Err(), "keep the access to the cluster in s3://bucket")
	require.False(t, there())
	require.NoError(t, keep(t.Context(), env, false))
	require.True(t, there())
	p = plan.Verify("cluster")
	require.NoError(t, keep(t.Context(), env.Planned(p), false))
	require.NoError(t, p.Err(), "nothing is left to do")
}
