package source_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

// naming is a configuration that names a release.
func naming(name string) *config.Config {
	cfg := config.Default()
	cfg.Platform.Release = name
	return cfg
}

func TestChoose(t *testing.T) {
	const digest = "#sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		flags               source.Release
		named, version, got string
	}{
		{named: "1.0.0", version: "1.1.0", got: "1.1.0"},
		{named: "1.0.0", version: "", got: "1.0.0"},
		{named: "./mine", version: "1.1.0", got: "./mine"},
		{flags: source.Release{Dir: "d"}, named: "1.0.0", version: "1.1.0", got: "1.0.0"},
		{named: "https://git.example.org/a/b.git//c@v1.0.0" + digest, version: "v1.1.0", got: "https://git.example.org/a/b.git//c@v1.1.0"},
		{named: "ssh://git@git.example.org/a/b.git@v1.0.0", version: "v1.1.0", got: "ssh://git@git.example.org/a/b.git@v1.1.0"},
	} {
		cfg := naming(c.named)
		c.flags.Choose(cfg, c.version)
		require.Equal(t, c.got, cfg.Platform.Release)
	}
}

func TestCheckVersion(t *testing.T) {
	r := &platform.Release{Name: "shop", Version: "1.1.0"}
	inGit := naming("https://git.example.org/a/b.git@v1.0.0")
	require.NoError(t, new(source.Release).CheckVersion(inGit, r, "v1.1.0"))
	require.NoError(t, (&source.Release{Dir: "d"}).CheckVersion(inGit, r, "1.1.0"))
	require.NoError(t, (&source.Release{Dir: "d"}).CheckVersion(inGit, r, ""))
	err := (&source.Release{Dir: "d"}).CheckVersion(inGit, r, "1.2.0")
	require.ErrorIs(t, err, &fault.Fault{Code: "PLT-022"})
	require.ErrorContains(t, err, "the platform release is shop 1.1.0")
}

func TestRouteOfTheReferencePlatform(t *testing.T) {
	var f source.Release
	got, err := f.Route(naming("1.0.0"), "1.0.0", "1.1.0")
	require.NoError(t, err)
	require.Equal(t, []string{"1.1.0"}, got)
	_, err = f.Route(naming("1.0.0"), "1.0.0", "")
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeSame})
	_, err = f.Route(naming("1.0.0"), "1.1.0", "1.0.0")
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeNoRoute})
	got, err = (&source.Release{Dir: "d"}).Route(naming("1.0.0"), "7.0.0", "9.0.0")
	require.NoError(t, err, "what a directory holds is seen when it is read")
	require.Equal(t, []string{"9.0.0"}, got)
}
