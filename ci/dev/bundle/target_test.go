package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

const registered = "enabled\ninterpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P\nflags: POF\noffset 0\n"

// kernel writes what a machine has of binfmt_misc below a folder.
func kernel(t *testing.T, formats map[string]string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "proc/sys/fs/binfmt_misc")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range formats {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return root
}

func TestTheKernelIsAskedOnce(t *testing.T) {
	to := targets()["arm64"]
	root := kernel(t, map[string]string{"register": "", "qemu-aarch64": registered})
	require.NoError(t, to.emulate(t.Context(), root, func(string) { t.Error("it is registered") }))
	text, err := os.ReadFile(filepath.Join(root, "proc/sys/fs/binfmt_misc/register"))
	require.NoError(t, err)
	require.Empty(t, text)
}

func TestAKernelThatDoesNotEmulate(t *testing.T) {
	refused := func(root, says string) {
		t.Helper()
		err := targets()["arm64"].emulate(t.Context(), root, func(string) {})
		e, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, codeMachine, e.Code)
		require.ErrorContains(t, err, says)
	}
	refused(t.TempDir(), "mount binfmt_misc: ") // nowhere to mount it
	refused(kernel(t, map[string]string{"register": ""}), "qemu-aarch64.conf: no such file")

	root := kernel(t, map[string]string{"register": ""})
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/lib/binfmt.d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/lib/binfmt.d/qemu-aarch64.conf"), []byte(":qemu-aarch64:M::x:y:z:F\n"), 0o644))
	require.NoError(t, targets()["arm64"].emulate(t.Context(), root, func(string) {}))
	text, err := os.ReadFile(filepath.Join(root, "proc/sys/fs/binfmt_misc/register"))
	require.NoError(t, err)
	require.Equal(t, ":qemu-aarch64:M::x:y:z:F", string(text), "one line, without its end")
}
