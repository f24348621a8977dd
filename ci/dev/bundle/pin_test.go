package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/lock"
)

func TestPinsOfOnePlatformAreReplaced(t *testing.T) {
	source, err := gotool.Checkout()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(source, "containers/lock/lock.yaml"))
	require.NoError(t, err)
	before, err := lock.Parse(text)
	require.NoError(t, err)
	same, err := withPackages(text, "linux/amd64", before.Packages["linux/amd64"])
	require.NoError(t, err)
	require.Equal(t, string(text), string(same), "as make pins writes it, with those of the other architecture")

	pins := []lock.Package{
		{Name: "zlib1g", Version: "1:1.2.13.dfsg-1", SHA256: strings.Repeat("a", 64)},
		{Name: "curl", Version: "7.88", SHA256: strings.Repeat("b", 64)},
	}
	both, err := withPackages(text, "linux/arm64", pins)
	require.NoError(t, err)
	after, err := lock.Parse(both)
	require.NoError(t, err)
	require.Equal(t, before.Packages["linux/amd64"], after.Packages["linux/amd64"])
	require.Equal(t, []lock.Package{pins[1], pins[0]}, after.Packages["linux/arm64"])
	require.Equal(t, before.Tools, after.Tools)
	require.NotEmpty(t, before.Packages["linux/arm64"], "they were there")

	pins[0].SHA256 = "none"
	_, err = withPackages(text, "linux/arm64", pins)
	require.ErrorContains(t, err, `"zlib1g": name, version and sha256 are required`)
}

func TestLayersWithDifferentVersionsAreNotPinned(t *testing.T) {
	all, err := merge(map[string]map[string]string{"node": {"git": "1", "runc": "2"}, "gitea": {"git": "1"}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"git": "1", "runc": "2"}, all)
	_, err = merge(map[string]map[string]string{"node": {"git": "2"}, "gitea": {"git": "1"}})
	require.ErrorContains(t, err, "the images have git as 1 and as 2")
}
