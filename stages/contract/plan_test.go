package contract_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
)

func TestAPlanAsText(t *testing.T) {
	p := &contract.Plan{
		Workflow: "install", Deployment: "blue", Digest: "sha256:1", Unchanged: 7,
		Release:       contract.PlannedRelease{Name: "shop", From: "1.0.0", To: "1.0.0"},
		Configuration: []contract.Difference{{Path: "global.domain", Old: `"a"`, New: `"b"`}},
		Changes: []contract.PlannedChange{
			{Of: contract.PlanImages, Action: contract.PlanAdd, Name: "new"},
			{Of: contract.PlanImages, Action: contract.PlanRemove, Name: "old"},
			{Of: contract.PlanTerraform, Action: contract.PlanReplace, Name: "a.b", Fields: []contract.Difference{{Path: "id", Old: `"1"`, New: "(known after apply)"}}},
			{Of: contract.PlanObjects, Action: contract.PlanAdd, Name: "Secret shop/db", Fields: []contract.Difference{{Path: "data.password", New: `"generated"`}}},
			{Of: contract.PlanObjects, Action: contract.PlanRemove, Name: "Namespace old", Destroys: "removes Namespace old, with its data"},
			{Of: contract.PlanJobs, Action: contract.PlanRun, Name: "Job shop/migrate", Note: "what it does has changed"},
			{Of: contract.PlanFiles, Action: contract.PlanChange, Name: "apps/web.yaml"},
			{Of: contract.PlanApplications, Action: contract.PlanChange, Name: "Application argocd/web", Note: "why"},
		},
		Unknown: []contract.PlannedUnknown{{What: "a/b", Why: "it waits"}},
	}
	p.Sort()
	require.Equal(t, []string{"a.b", "Namespace old", "Secret shop/db"}, []string{p.Changes[0].Name, p.Changes[1].Name, p.Changes[2].Name})
	var b strings.Builder
	require.NoError(t, p.Text(&b))
	require.Equal(t, `Plan of install for deployment blue
Release: shop 1.0.0

Configuration:
  ~ global.domain: "a" → "b"

Terraform:
  -/+ a.b
      ~ id: "1" → (known after apply)

Objects:
  - Namespace old
  + Secret shop/db
      + data.password: "generated"

Jobs that would run:
  Job shop/migrate: what it does has changed

Files that would be pushed to the Git server:
  ~ apps/web.yaml

Applications:
  ~ Application argocd/web (why)

Images:
  + new
  - old

Unknown until a run has been there:
  a/b: it waits

Destructive:
  ! removes Namespace old, with its data

1 to add, 1 to change, 1 to remove, 7 unchanged; 1 setting differs; 1 resource of Terraform changes; 1 Job runs; 1 file is pushed; 1 is destructive
digest sha256:1
`, b.String())
	require.Equal(t, "no changes: 7 objects are as they should be", (&contract.Plan{Unchanged: 7}).Summary())
	require.Equal(t, "no changes: 1 object is as it should be; 1 thing is unknown", (&contract.Plan{Unchanged: 1, Unknown: p.Unknown}).Summary())
	p.Configuration = append(p.Configuration, p.Configuration...)
	require.Contains(t, p.Summary(), "; 2 settings differ; 1 resource")

	for name, want := range map[string]string{"shop": "Release: shop 1.0.0, which is removed\n", "": "Release: 1.0.0, which is removed\n"} {
		b.Reset()
		require.NoError(t, (&contract.Plan{Workflow: "destroy", Release: contract.PlannedRelease{Name: name, From: "1.0.0"}}).Text(&b))
		require.Contains(t, b.String(), want)
	}
}

// TestAPlanOfAnUpgradeAsText names the releases that follow.
func TestAPlanOfAnUpgradeAsText(t *testing.T) {
	p := &contract.Plan{
		Workflow: "upgrade", Deployment: "blue", Digest: "sha256:1", Release: contract.PlannedRelease{Name: "shop", From: "1.0.0", To: "1.1.0"},
		Style: contract.InPlace, Configuration: []contract.Difference{{Path: "a.b", Old: "1"}},
		Changes: []contract.PlannedChange{
			{Of: contract.PlanComponents, Action: contract.PlanAdd, Name: "page", Note: "app"}, {Of: contract.PlanComponents, Action: contract.PlanRemove, Name: "site", Note: "app"},
			{Of: contract.PlanBackups, Action: contract.PlanRun, Name: "orders", Note: "exists already, as 20260102-030405-aaaaaa"}, {Of: contract.PlanBackups, Action: contract.PlanRun, Name: "users"},
			{Of: contract.PlanMigrations, Action: contract.PlanRun, Name: "trim of orders", Note: "after the components"},
		},
		Later: []string{"2.0.0"},
	}
	var b strings.Builder
	require.NoError(t, p.Text(&b))
	require.Equal(t, `Plan of upgrade for deployment blue
Release: shop 1.0.0 → 1.1.0
Style: in-place
It is the first upgrade of 2: 1.1.0, 2.0.0

Configuration:
  - a.b: 1

Components:
  + page (app)
  - site (app)

Backups that would be made, and proved by restoring them:
  orders: exists already, as 20260102-030405-aaaaaa
  users

Migrations:
  trim of orders: after the components

0 to add, 0 to change, 0 to remove, 0 unchanged; 1 setting differs; 2 backups are made; 1 migration is carried out; 1 upgrade follows
digest sha256:1
`, b.String())
}

// TestNamesWithLineBreaksAddNoLineToAPlan: anyone with rights in a namespace can make a Role of any name.
func TestNamesWithLineBreaksAddNoLineToAPlan(t *testing.T) {
	const name = "x\nerror FAKE-001: forged"
	p := &contract.Plan{
		Changes: []contract.PlannedChange{
			{Of: contract.PlanObjects, Action: contract.PlanRemove, Name: "Role team/" + name, Note: name, Destroys: "removes Role team/" + name},
			{Of: contract.PlanJobs, Action: contract.PlanRun, Name: name, Note: name},
		},
		Unknown: []contract.PlannedUnknown{{What: name, Why: name}},
		Refused: []contract.PlannedUnknown{{What: name, Why: name, Fix: name}},
	}
	var b strings.Builder
	require.NoError(t, p.Text(&b))
	require.Contains(t, b.String(), "  - Role team/x error FAKE-001: forged (x error FAKE-001: forged)\n")
	require.NotContains(t, b.String(), "\nerror")
}
