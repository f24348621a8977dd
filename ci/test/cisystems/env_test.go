package cisystems

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeEnv: a shell has the engine's environment, the bundle's programs, this checkout's
// before those of another, and the digest that make bundle wrote, not that of the folder.
func TestMakeEnv(t *testing.T) {
	makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	dir, tools := t.TempDir(), t.TempDir()
	bundle := filepath.Join(dir, "it's a bundle")
	require.NoError(t, os.MkdirAll(bundle, 0o755))
	const engine = "#!/bin/sh\n[ \"$*\" != \"$FAILS\" ] && echo export ENGINE=\\''an engine'\\'\n"
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte(engine), 0o755))
	shell := func(script string, env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), append([]string{"MAKE=make -s -f " + makefile, "PATH=" + tools + ":/usr/bin:/bin", "MAKEFLAGS=", "SLIPWAY_BUNDLE=", "SLIPWAY_BUNDLE_DIGEST="}, env...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const in = `text="$($MAKE env)"; eval "$text"; `

	out, err := shell(in)
	require.Error(t, err)
	require.Contains(t, out, "run make bundle")

	require.NoError(t, os.WriteFile(filepath.Join(bundle, "bundle.json"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("BUNDLE="+bundle+"\n"), 0o644))
	out, err = shell(in)
	require.Error(t, err, "it is that of an older checkout")
	require.Contains(t, out, "run make bundle")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("BUNDLE="+bundle+"\nbundleDigest=sha256:0\n"), 0o644))
	const show = `echo "$ENGINE; $SLIPWAY_BUNDLE; $SLIPWAY_BUNDLE_DIGEST; $PATH"`
	want := "an engine; " + bundle + "; sha256:0; " + bundle + "/bin:" + tools + ":/usr/bin:/bin\n"
	out, err = shell(in + show)
	require.NoError(t, err, out)
	require.Equal(t, want, out)
	out, err = shell(in + in + show)
	require.NoError(t, err, out)
	require.Equal(t, want, out, "again")

	// What make bundle builds is written down, and what else is in .env stays.
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("OTHER=1\nBUNDLE=/old\nbundleDigest=sha256:1\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte("#!/bin/sh\necho BUNDLE=/new\necho bundleDigest=sha256:2\n"), 0o755))
	out, err = shell("$MAKE bundle")
	require.NoError(t, err, out)
	require.Equal(t, "/new\n", out)
	text, err := os.ReadFile(filepath.Join(dir, ".env"))
	require.NoError(t, err)
	require.Equal(t, "OTHER=1\nBUNDLE=/new\nbundleDigest=sha256:2\n", string(text))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte(engine), 0o755))

	_, err = shell(in, "FAILS=run -C ci/dev/engine . env")
	require.Error(t, err, "no engine")
}
