package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/conductor"
)

func TestAConfigurationThatCannotBeRead(t *testing.T) {
	for what, path := range map[string]string{"no file": "/does/not/exist.yaml", "a directory": t.TempDir()} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway("validate", "--config", path)
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, "CFG-003")
			require.Contains(t, errs, path)
		})
	}
}

func TestADirectoryThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, says := range map[string]string{"/does/not/exist": "no such file or directory", file: "it is not a directory"} {
		_, err := new(target).directory(nil, path, "")
		require.ErrorIs(t, err, &fault.Fault{Code: codeNoDirectory})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, "open "+path+": ")
		require.ErrorContains(t, err, says)
	}
}

// TestAReleaseThatTheModuleCannotSee: the configuration names a directory on the
// machine that calls; only a flag hands one over.
func TestAReleaseThatTheModuleCannotSee(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {release: ./mine}\n"), config.Options{Providers: []string{"local"}})
	require.NoError(t, err)
	release := func() *fault.Fault {
		err := (&target{cfg: cfg, config: "dev.yaml"}).release(t.Context(), nil, &conductor.Options{})
		require.ErrorIs(t, err, &fault.Fault{Code: codeNoDirectory})
		f, _ := errors.AsType[*fault.Fault](err)
		return f
	}
	require.NotContains(t, release().Fix, "dagger call")
	t.Setenv(moduleEnv, "1")
	f := release()
	require.Equal(t, fault.Usage, f.Class)
	require.Contains(t, f.Fix, "dagger call install --platform DIR")
	require.ErrorContains(t, f, "./mine")
}

func TestARegistryOnTheEnginesMachineNeedsAnAddressForTheNode(t *testing.T) {
	load := func(text string) *target {
		cfg, err := config.Load([]byte(text), config.Options{Providers: []string{"local"}})
		require.NoError(t, err)
		return &target{cfg: cfg}
	}
	err := load("apiVersion: slipway.sh/v1\n").reachable(&containers.Images{}, local.Provider{}, "localhost:5000/slipway")
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoMirror})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "localhost:5000/slipway is the engine's own machine")

	images := &containers.Images{}
	require.NoError(t, load("apiVersion: slipway.sh/v1\nlocal: {registryMirror: \"http://192.0.2.1:5000/slipway\"}\n").reachable(images, local.Provider{}, "localhost:5000/slipway"))
	require.Equal(t, "http://192.0.2.1:5000/slipway", images.Mirror)
}
