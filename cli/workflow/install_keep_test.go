package workflow

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAnInstallKeepsTheInstalledRelease where the configuration names an older one, if this
// program has the installed one.
func TestAnInstallKeepsTheInstalledRelease(t *testing.T) {
	for name, c := range map[string]struct {
		names, dir, installed string
		err                   error
		keeps                 string
	}{
		"after an upgrade":        {names: "1.0.0", installed: "1.1.0", keeps: "1.1.0"},
		"it is the same":          {names: "1.1.0", installed: "1.1.0"},
		"before an upgrade":       {names: "1.1.0", installed: "1.0.0"},
		"of a newer program":      {names: "1.0.0", installed: "9.0.0"},
		"forged":                  {names: "1.0.0", installed: "../1.1.0"},
		"nothing is installed":    {names: "1.0.0", err: &fault.Fault{Code: contract.CodeNotThere, Class: fault.Usage}},
		"the release is a folder": {names: "1.0.0", dir: "shop", installed: "1.1.0"},
		"it names a folder":       {names: "./shop", installed: "1.1.0"},
		"it is in a repository":   {names: "https://git.example.com/shop.git@1.0.0", installed: "1.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var o installOptions
			o.deployment.Release = source.Release{Dir: c.dir}
			cfg := config.Default()
			cfg.Platform.Release = c.names
			keeps, err := o.keptVersion(cfg, func() (string, error) { return c.installed, c.err })
			require.NoError(t, err)
			require.Equal(t, c.keeps, keeps)
		})
	}
}

// TestTheStateIsAskedOnlyIfThereIsANewerRelease, and if it cannot be read, nothing was changed.
func TestTheStateIsAskedOnlyIfThereIsANewerRelease(t *testing.T) {
	var o installOptions
	cfg := config.Default()
	cfg.Platform.Release = "2.0.0"
	_, err := o.keptVersion(cfg, func() (string, error) { return "", errors.New("asked") })
	require.NoError(t, err)
	cfg.Platform.Release = "1.0.0"
	_, err = o.keptVersion(cfg, func() (string, error) { return "", &fault.Fault{Code: store.CodeUnreachable, Class: fault.Step} })
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
}
