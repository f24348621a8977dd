//go:build unix

package data

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// foresees previews the steps of an upgrade in a style, and returns what they tell.
func (b *bench) foresees(style string) []any {
	b.t.Helper()
	seen := &plan.Plan{}
	env := func() *step.Env { return b.env("p1", "new").Planned(seen.Of("preorchestrator/backup")) }
	writes := len(b.api.Writes())
	data, err := planBackUp(b.t.Context(), env(), contract.BackupDataInput{PodInput: pods(), Data: "orders"})
	require.NoError(b.t, err)
	in := contract.MigrateInput{PodInput: pods(), Data: []string{"orders"}}
	_, err = planComplete(b.t.Context(), env(), contract.BackupInput{Style: style, Data: []contract.BackedUp{data}})
	require.NoError(b.t, err)
	_, err = planMigrateBefore(b.t.Context(), env(), in)
	require.NoError(b.t, err)
	_, err = planMigrateAfter(b.t.Context(), env(), in)
	require.NoError(b.t, err)
	require.Len(b.t, b.api.Writes(), writes, "a plan writes nothing")
	return seen.Notes()
}

func migration(name, note string) contract.PlannedChange {
	return contract.PlannedChange{Of: contract.PlanMigrations, Action: contract.PlanRun, Name: name + " of orders", Note: note}
}

func TestAnUpgradeIsForeseen(t *testing.T) {
	b := newBench(t)
	b.installs()
	b.api.Set(t, "/apis/apps/v1/namespaces/shop/deployments/web", "{metadata: {name: web, namespace: shop}, spec: {replicas: 2}}")
	split, trim := migration("split", "before the components"), migration("trim", "after the components")
	backup := contract.PlannedChange{Of: contract.PlanBackups, Action: contract.PlanRun, Name: "orders"}
	require.Equal(t, []any{backup, contract.PlannedStyle(contract.Graceful), split, trim}, b.foresees(""))
	require.Equal(t, installed.Record{Platform: "shop", Version: "1.0.0"}, b.record())

	split.Note, trim.Note = split.Note+"; stopped meanwhile: Deployment shop/web", trim.Note+"; stopped meanwhile: Deployment shop/web"
	require.Equal(t, []any{backup, contract.PlannedStyle(contract.InPlace), split, trim}, b.foresees(contract.InPlace))

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
		contract.PlannedChange{Of: contract.PlanBackups, Action: contract.PlanRun, Name: "orders", Note: "exists already, as r1"}, contract.PlannedStyle(contract.InPlace),
		migration("trim", "after the components"),
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
