package cisystems

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeEnv: a shell has the engine's environment and the bundle's programs, this
// checkout's before those of another.
func TestMakeEnv(t *testing.T) {
	makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	dir, tools := t.TempDir(), t.TempDir()
	bundle := filepath.Join(dir, "it's a bundle")
	require.NoError(t, os.MkdirAll(bundle, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte("#!/bin/sh\n[ \"$*\" != \"$FAILS\" ] && echo export ENGINE=\\''an engine'\\'\n"), 0o755))
	shell := func(script string, env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), append([]string{"MAKE=make -s -f " + makefile, "PATH=" + tools + ":/usr/bin:/bin", "MAKEFLAGS=", "SLIPWAY_BUNDLE="}, env...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const in = `text="$($MAKE env)"; eval "$text"; `

	out, err := shell(in)
	require.Error(t, err)
	require.Contains(t, out, "run make bundle")

	require.NoError(t, os.WriteFile(filepath.Join(bundle, "bundle.json"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("BUNDLE="+bundle+"\n"), 0o644))
	const show = `echo "$ENGINE; $SLIPWAY_BUNDLE; $PATH"`
	want := "an engine; " + bundle + "; " + bundle + "/bin:" + tools + ":/usr/bin:/bin\n"
	out, err = shell(in + show)
	require.NoError(t, err, out)
	require.Equal(t, want, out)
	out, err = shell(in + in + show)
	require.NoError(t, err, out)
	require.Equal(t, want, out, "again")

	_, err = shell(in, "FAILS=run -C ci/dev/engine . env")
	require.Error(t, err, "no engine")
}
