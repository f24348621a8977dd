package release

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/directory"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// TestAReleaseThatTheModuleCannotSee: the configuration names a directory on the
// machine that calls; only a flag hands one over.
func TestAReleaseThatTheModuleCannotSee(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {release: ./mine}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	release := func() *fault.Fault {
		err := new(Flags).Open(t.Context(), cfg, filepath.Clean, nil, &conductor.Options{})
		require.ErrorIs(t, err, &fault.Fault{Code: directory.CodeMissing})
		f, _ := errors.AsType[*fault.Fault](err)
		return f
	}
	require.NotContains(t, release().Fix, "dagger call")
	t.Setenv(module.Env, "1")
	f := release()
	require.Equal(t, fault.Usage, f.Class)
	require.Contains(t, f.Fix, "dagger call install --platform DIR")
	require.ErrorContains(t, f, "./mine")
}

// TestAReleaseThatTheEngineFetches is not on this machine.
func TestAReleaseThatTheEngineFetches(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {release: \"https://git.example.com/platform.git@v1.2.0\"}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	_, err = new(Flags).Load(cfg, filepath.Clean)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFetched})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.Nil(t, new(Flags).Known(filepath.Clean)(cfg))
}
