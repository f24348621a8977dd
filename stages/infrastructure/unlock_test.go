package infrastructure

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestOnlyTheLockOfAKilledTerraformIsRemoved: any other one is somebody's.
func TestOnlyTheLockOfAKilledTerraformIsRemoved(t *testing.T) {
	dir := t.TempDir()
	program, argv := filepath.Join(dir, "terraform"), filepath.Join(dir, "argv")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$*\" >>"+argv+"\n"), 0o755))
	tf, err := tfexec.NewTerraform(dir, program)
	require.NoError(t, err)
	env := step.NewEnv("r1", "infrastructure/terraform", step.Dirs{State: dir}, io.Discard, io.Discard)
	taken := errors.New("exit status 1\n\nError: Error acquiring the state lock\n\nLock Info:\n  ID:        8a-b1\n  Path:      x\n")
	unlocked := func() string {
		text, err := os.ReadFile(argv)
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		return string(text)
	}
	for what, c := range map[string]struct {
		killed bool
		err    error
	}{
		"a Terraform that runs":     {false, taken},
		"another error":             {true, errors.New("exit status 1\n\nError: no such bucket\n")},
		"a lock that nobody can id": {true, errors.New("Error acquiring the state lock")},
	} {
		calls := 0
		err := root{Terraform: tf, killed: c.killed}.locked(t.Context(), env, func() error { calls++; return c.err })
		require.ErrorIs(t, err, c.err, what)
		require.Equal(t, 1, calls, what)
		require.Empty(t, unlocked(), what)
	}

	calls := 0
	err = root{Terraform: tf, killed: true}.locked(t.Context(), env, func() error {
		if calls++; calls == 1 {
			return taken
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, calls, "it is tried again")
	require.Equal(t, "force-unlock -no-color -force 8a-b1\n", unlocked())

	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'not yours' >&2\nexit 1\n"), 0o755))
	err = root{Terraform: tf, killed: true}.locked(t.Context(), env, func() error { return taken })
	require.ErrorContains(t, err, "not yours")
}

// TestTheAccessIsKept: a look says that it is not there yet and keeps nothing.
func TestTheAccessIsKept(t *testing.T) {
	env := step.NewEnv("r1", "infrastructure/cluster", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
	require.NoError(t, keepAccess(t.Context(), env), "it is in the store already, which is the volume")

	env = step.NewEnv("r1", "infrastructure/cluster", step.Dirs{State: env.StateDir}, io.Discard, io.Discard)
	env.Place = state.Place{Volume: env.StateDir, URL: "s3://bucket", MakeKey: true, Openers: map[string]store.Opener{"s3": memory{}}}
	require.ErrorContains(t, keepAccess(t.Context(), env), "read the kubeconfig")
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	require.NoError(t, os.WriteFile(env.Kubeconfig, []byte("c4nary"), 0o600))
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	there := func() bool {
		keys, err := s.List(t.Context(), "secrets/")
		require.NoError(t, err)
		return len(keys) == 1
	}
	require.ErrorContains(t, keepAccess(dryrun.Context(t.Context()), env), "keep the access to the cluster in s3://bucket")
	require.False(t, there())
	require.NoError(t, keepAccess(t.Context(), env))
	require.True(t, there())
	require.NoError(t, keepAccess(dryrun.Context(t.Context()), env), "nothing is left to do")
}
