//go:build unix

package data

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/installed"
)

// foresees previews the steps of an upgrade in a style, and returns what they tell.
func (b *bench) foresees(style string) (told []any) {
	b.t.Helper()
	seen := &dryrun.Preview{}
	ctx := seen.Watch(b.t.Context(), "preorchestrator/backup")
	writes := len(b.api.Writes())
	data, err := previewBackUp(ctx, b.env("p1", "new"), contract.BackupDataInput{PodInput: pods(), Data: "orders"})
	require.NoError(b.t, err)
	in := contract.MigrateInput{PodInput: pods(), Data: []string{"orders"}}
	_, err = previewComplete(ctx, b.env("p1", "new"), contract.BackupInput{Style: style, Data: []contract.BackedUp{data}})
	require.NoError(b.t, err)
	_, err = previewMigrateBefore(ctx, b.env("p1", "new"), in)
	require.NoError(b.t, err)
	_, err = previewMigrateAfter(ctx, b.env("p1", "new"), in)
	require.NoError(b.t, err)
	require.Len(b.t, b.api.Writes(), writes, "a preview writes nothing")
	for _, n := range seen.Notes() {
		told = append(told, n.Value)
	}
	return told
}

func TestAnUpgradeIsForeseen(t *testing.T) {
	b := newBench(t)
	b.installs()
	b.api.Set(t, "/apis/apps/v1/namespaces/shop/deployments/web", "{metadata: {name: web, namespace: shop}, spec: {replicas: 2}}")
	split := contract.PlannedMigration{Name: "split", Data: "orders", When: "before", Undo: true}
	trim := contract.PlannedMigration{Name: "trim", Data: "orders", When: "after", Undo: true}
	require.Equal(t, []any{contract.PlannedBackup{Data: "orders"}, contract.PlannedStyle(contract.Graceful), split, trim}, b.foresees(""))
	require.Equal(t, installed.Record{Platform: "shop", Version: "1.0.0"}, b.record())

	split.Stops, trim.Stops = []string{"Deployment shop/web"}, []string{"Deployment shop/web"}
	require.Equal(t, []any{contract.PlannedBackup{Data: "orders"}, contract.PlannedStyle(contract.InPlace), split, trim}, b.foresees(contract.InPlace))

	b.api.Delete("/api/v1/namespaces/shop")
	require.Equal(t, []any{contract.PlannedStyle(contract.Graceful)}, b.foresees(""), "there is no such data")
}

// TestAnUpgradeThatGoesOnIsForeseen with the backup and the style that it has begun with.
func TestAnUpgradeThatGoesOnIsForeseen(t *testing.T) {
	b := newBench(t)
	b.begins("r1", contract.InPlace)
	_, err := b.migrate(true)
	require.NoError(t, err)
	require.Equal(t, []any{
		contract.PlannedBackup{Data: "orders", Made: "r1"}, contract.PlannedStyle(contract.InPlace),
		contract.PlannedMigration{Name: "trim", Data: "orders", When: "after", Undo: true},
	}, b.foresees(""))

	b.api.Delete("/api/v1/namespaces/shop") // whether it is there counts no more
	require.Len(t, b.foresees(""), 3)
}

// TestNewDataOfAnUpgradeThatGoesOn is none in its plan either, though its namespace is there
// by now.
func TestNewDataOfAnUpgradeThatGoesOn(t *testing.T) {
	b := newBench(t)
	b.installs()
	b.api.Delete("/api/v1/namespaces/shop")
	absent, err := b.backUp("r1")
	require.NoError(t, err)
	_, err = b.complete("r1", "", absent)
	require.NoError(t, err)
	b.api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop}")
	require.Equal(t, []any{contract.PlannedStyle(contract.Graceful)}, b.foresees(""))
}
