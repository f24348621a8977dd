package slipway_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

func TestCommands(t *testing.T) {
	d := slipway.Deployment{Name: "n", Bundle: "/b", Root: "/r"}
	cmd := d.CLI(t.Context(), "toolchain", "--", "ls")
	require.Equal(t, []string{"/b/bin/slipway", "toolchain", "--name", "n", "--bundle", "/b", "--", "ls"}, cmd.Args)
	require.Equal(t, "/r", cmd.Dir)
	require.Subset(t, cmd.Env, []string{"SLIPWAY_CONFIG_DIR=/r/ci/test/e2e/testdata/no-deployments", "SLIPWAY_DEPLOYMENT="}, "nobody's own")
	d.Config = "/c"
	require.Contains(t, d.CLI(t.Context(), "status").Env, "SLIPWAY_CONFIG_DIR=/c")
	d.Digest = "sha256:0"
	require.Equal(t, []string{"/b/bin/slipway", "status", "--name", "n", "--bundle", "/b", "--bundle-digest", "sha256:0"}, d.CLI(t.Context(), "status").Args)
	d.Name, d.Lock, d.Dir = "", "/l", "/d"
	cmd = d.Module(t.Context(), "install", "--until", "x")
	require.Equal(t, []string{"dagger", "call", "--progress", "plain", "--mod", "/r", "--lock", "/l", "install", "--until", "x"}, cmd.Args)
	require.Equal(t, "/d", cmd.Dir)
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "bin/slipway")
	require.NoError(t, os.Mkdir(filepath.Dir(tool), 0o755))
	require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\necho said\necho complained >&2\nexit $4\n"), 0o755))
	d := slipway.Deployment{Bundle: dir, Root: dir}
	var log bytes.Buffer
	require.NoError(t, slipway.Run(d.CLI(t.Context(), "install", "0"), &log))
	require.Equal(t, "said\ncomplained\n", log.String())
	out, err := slipway.Output(d.CLI(t.Context(), "install", "0"))
	require.NoError(t, err)
	require.Equal(t, "said\n", string(out))

	var exit *slipway.ExitError
	require.ErrorAs(t, slipway.Run(d.CLI(t.Context(), "install", "4"), &log), &exit)
	require.Equal(t, 4, exit.Status)
	require.EqualError(t, exit, "slipway install --bundle "+dir+" 4: exit status 4:\nsaid\ncomplained\n")
	_, err = slipway.Output(d.CLI(t.Context(), "install", "5"))
	require.ErrorAs(t, err, &exit)
	require.Equal(t, "complained\n", exit.Tail)

	require.NoError(t, os.Remove(tool))
	require.ErrorIs(t, slipway.Run(d.CLI(t.Context(), "install"), &log), os.ErrNotExist)
}
