package incontainer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestTheComponentsBetweenTwoReleases: what is off is neither added nor removed.
func TestTheComponentsBetweenTwoReleases(t *testing.T) {
	const off = ", components: {database: {enabled: false}, guestbook: {enabled: false}}"
	with := func(version, says string) (*platform.Release, *config.Config) {
		files, err := platforms.Release(version)
		require.NoError(t, err)
		r, err := platform.Load(files)
		require.NoError(t, err)
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: demo}\nplatform: {release: "+version+says+"}\n"), config.Options{DefaultProvider: "local"})
		require.NoError(t, err)
		return r, cfg
	}
	former, was := with("1.1.0", off)
	release, cfg := with("2.0.0", off)
	got, err := componentsBetween(former, was, release, cfg)
	require.NoError(t, err)
	require.Equal(t, []contract.PlannedChange{{Of: contract.PlanComponents, Action: contract.PlanRemove, Name: "welcome", Note: "app"}}, got)
	release, cfg = with("2.0.0", "")
	got, err = componentsBetween(former, was, release, cfg)
	require.NoError(t, err)
	require.Contains(t, got, contract.PlannedChange{Of: contract.PlanComponents, Action: contract.PlanAdd, Name: "database", Note: "app"})
}
