//go:build unix

package infrastructure

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestLockedStateNamesTheHolder(t *testing.T) {
	tools := realTerraform(t)
	root, vars := localRoot(t, "demo")
	env := newEnv(t, root, io.Discard)
	require.NoError(t, os.MkdirAll(filepath.Dir(statePath(env)), 0o700))
	// Terraform locks the file itself; the process that holds it here is this one,
	// which needs a lock of another kind than its own to be seen.
	f, err := os.OpenFile(statePath(env), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	require.NoError(t, syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock))
	tools.lockTimeout = "1s"
	_, err = tools.terraform(t.Context(), env, contract.TerraformInput{Vars: vars})
	require.ErrorContains(t, err, "the Terraform state has been locked for more than 1s")
	require.Equal(t, fault.Locked, fault.ClassOf(err))
}
