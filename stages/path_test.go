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

func TestTheUpgradeBetweenTwoReleases(t *testing.T) {
	got, err := stages.UpgradeBetween(held(t, "1.1.0", ""), held(t, "2.0.0", ""), contract.InPlace)
	require.NoError(t, err)
	require.Equal(t, []string{"reference", "1.1.0", "2.0.0", contract.InPlace}, []string{got.Platform, got.From, got.To, got.Style})
	require.Equal(t, []contract.PlannedComponent{{Action: contract.PlanRemove, Name: "welcome", Kind: "app"}}, got.Components)
	require.Equal(t, []contract.PlannedBackup{{Data: "entries"}}, got.Backups)
	stops := []string{"Deployment guestbook/guestbook"}
	require.Equal(t, []contract.PlannedMigration{
		{Name: "authors", Data: "entries", When: "before", Undo: true, Stops: stops},
		{Name: "author-column", Data: "entries", When: "after", Undo: true, Stops: stops},
	}, got.Migrations)
	require.Len(t, got.Unknown, 1)

	got, err = stages.UpgradeBetween(held(t, "1.1.0", ""), held(t, "2.0.0", ""), "")
	require.NoError(t, err)
	require.Equal(t, contract.Graceful, got.Style)
	require.Empty(t, got.Migrations[0].Stops)
}

// TestWhatIsOffIsNotUpgraded, and what was off may have no data.
func TestWhatIsOffIsNotUpgraded(t *testing.T) {
	const off = ", components: {database: {enabled: false}, guestbook: {enabled: false}}"
	was := held(t, "1.1.0", off)
	got, err := stages.UpgradeBetween(was, held(t, "2.0.0", off), "")
	require.NoError(t, err)
	require.Empty(t, got.Backups)
	require.Empty(t, got.Migrations)
	require.Equal(t, []contract.PlannedComponent{{Action: contract.PlanRemove, Name: "welcome", Kind: "app"}}, got.Components)

	got, err = stages.UpgradeBetween(was, held(t, "2.0.0", ""), "")
	require.NoError(t, err)
	require.Empty(t, got.Backups, "nothing is guessed")
	require.Equal(t, "data entries", got.Unknown[0].What)
	require.Contains(t, got.Components, contract.PlannedComponent{Action: contract.PlanAdd, Name: "database", Kind: "app"})
}
