package stages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// held is a release of the reference platform, with what a configuration says of it.
func held(t *testing.T, version, says string) stages.Held {
	t.Helper()
	files, err := platforms.Release(version)
	require.NoError(t, err)
	r, err := platform.Load(files)
	require.NoError(t, err)
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: demo}\nplatform: {release: "+version+says+"}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	return stages.Held{Release: r, Config: cfg}
}

// TestTheComponentsBetweenTwoReleases: what is off is neither added nor removed.
func TestTheComponentsBetweenTwoReleases(t *testing.T) {
	const off = ", components: {database: {enabled: false}, guestbook: {enabled: false}}"
	was := held(t, "1.1.0", off)
	got, err := stages.ComponentsBetween(was, held(t, "2.0.0", off))
	require.NoError(t, err)
	require.Equal(t, []contract.PlannedChange{{Of: contract.PlanComponents, Action: contract.PlanRemove, Name: "welcome", Note: "app"}}, got)
	got, err = stages.ComponentsBetween(was, held(t, "2.0.0", ""))
	require.NoError(t, err)
	require.Contains(t, got, contract.PlannedChange{Of: contract.PlanComponents, Action: contract.PlanAdd, Name: "database", Note: "app"})
}
