package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers/local"
)

// lockFile writes a lock as bundle push does.
func lockFile(t *testing.T, location string) string {
	t.Helper()
	pins, err := lock.Load()
	require.NoError(t, err)
	entry := lock.Registry{Ref: "r", Digest: "sha256:" + strings.Repeat("a", 64), Pushed: "sha256:" + strings.Repeat("b", 64)}
	all := map[string]lock.Registry{}
	for _, i := range pins.Images {
		all[i.Name] = entry
	}
	pins, err = pins.At(location, "linux/amd64", all, entry, nil)
	require.NoError(t, err)
	text, err := pins.Marshal()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "slipway.lock.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

func TestTheRegistryIsTheMostExplicitOne(t *testing.T) {
	path := lockFile(t, "pushed.example.com/slipway")
	for want, c := range map[string]struct{ flag, configured string }{
		"pushed.example.com/slipway": {"", ""},
		"config.example.com":         {"", "config.example.com"},
		"flag.example.com":           {"flag.example.com", "config.example.com"},
	} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var f Flags
		f.AddFlags(set)
		require.NoError(t, set.Parse([]string{"--lock", path, "--registry", c.flag}))
		cfg := &config.Config{Advanced: config.Advanced{Registry: c.configured}}
		pins, err := f.Pins(cfg)
		require.NoError(t, err)
		require.True(t, f.fromRegistry())
		require.Equal(t, want, cfg.Advanced.Registry)
		require.NotEmpty(t, pins.Versions()["terraform"])
	}
}

func TestARegistryOnTheEnginesMachineNeedsAnAddressForTheNode(t *testing.T) {
	load := func(text string) *config.Config {
		cfg, err := config.Load([]byte(text), config.Options{DefaultProvider: "local"})
		require.NoError(t, err)
		return cfg
	}
	err := reachable(load("apiVersion: slipway.sh/v1\n"), &containers.Images{}, local.Provider{}, "localhost:5000/slipway")
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoMirror})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "localhost:5000/slipway is the engine's own machine")

	images := &containers.Images{}
	require.NoError(t, reachable(load("apiVersion: slipway.sh/v1\nlocal: {registryMirror: \"http://192.0.2.1:5000/slipway\"}\n"), images, local.Provider{}, "localhost:5000/slipway"))
	require.Equal(t, "http://192.0.2.1:5000/slipway", images.Mirror)
}
