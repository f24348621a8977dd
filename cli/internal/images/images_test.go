package images

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
)

// lockFile writes a lock as bundle push does.
func lockFile(t *testing.T, location string) string {
	t.Helper()
	pins, err := lock.Load()
	require.NoError(t, err)
	sum := strings.Repeat("a", 64)
	x := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for _, tool := range pins.Tools {
		x.Files = append(x.Files, bundle.File{Path: "bin/" + tool.Name, Name: tool.Name, Kind: bundle.Tool, Version: tool.Version, Origin: tool.Modules[0].Origin(), SHA256: sum})
	}
	for _, i := range pins.Images {
		x.Images = append(x.Images, bundle.Image{Name: i.Name, Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Digest: "sha256:" + sum, StandsFor: i.StandsFor})
	}
	of := lock.Pushed{Toolchain: "sha256:" + sum, Manifests: "sha256:" + sum, Index: x}
	text, err := (&lock.File{Version: lock.Format, Location: location, Bundles: map[string]lock.Pushed{x.Platform: of}}).Marshal()
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
	require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodeNowhere})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "localhost:5000/slipway is the engine's own machine")

	images := &containers.Images{}
	require.NoError(t, reachable(load("apiVersion: slipway.sh/v1\nlocal: {registryMirror: \"http://192.0.2.1:5000/slipway\"}\n"), images, local.Provider{}, "localhost:5000/slipway"))
	require.Equal(t, "http://192.0.2.1:5000/slipway", images.Mirror)
}

func TestTheNodesOfAClusterThatIsThereMayKnowTheRegistryByAnotherName(t *testing.T) {
	load := func(more string) *config.Config {
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nprovider: existing\nexisting: {kubeconfig: env:K"+more+"}\n"), config.Options{Providers: []string{"existing"}})
		require.NoError(t, err)
		return cfg
	}
	const registry = "localhost:5000/slipway"
	err := reachable(load(""), &containers.Images{}, existing.Provider{}, registry)
	require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodeNowhere})
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, `existing: {registry: "registry.internal:5000/slipway"}`)

	images := &containers.Images{
		Refs: map[string]string{"redis": "slipway.local/redis@sha256:0"}, Registry: map[string]string{"redis": registry + "/redis@sha256:0"},
		StandsFor: map[string]string{"quay.io/web:1": registry + "/web@sha256:1"},
	}
	require.NoError(t, reachable(load(`, registry: "192.0.2.1:5000/slipway"`), images, existing.Provider{}, registry))
	refs, rewrite := images.In(false)
	require.Equal(t, map[string]string{"redis": "192.0.2.1:5000/slipway/redis@sha256:0"}, refs)
	require.Equal(t, map[string]string{"quay.io/web:1": "192.0.2.1:5000/slipway/web@sha256:1"}, rewrite)
	require.NoError(t, reachable(load(""), &containers.Images{Mirror: "https://registry.example.com"}, existing.Provider{}, "registry.example.com"))
}
