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
		PlannedChange: contract.PlannedChange{Configuration: []contract.Difference{{Path: "global.domain", Old: `"a"`, New: `"b"`}}},
		Terraform:     contract.PlannedTerraform{Resources: []contract.PlannedResource{{Address: "a.b", Action: "replace", Fields: []contract.Difference{{Path: "id", Old: `"1"`, New: "(known after apply)"}}}}},
		Objects: []contract.PlannedObject{
			{Action: contract.PlanAdd, Kind: "Secret", Namespace: "shop", Name: "db", Fields: []contract.Difference{{Path: "data.password", New: `"generated"`}}},
			{Action: contract.PlanRemove, Kind: "Namespace", Name: "old"},
		},
		Jobs:         []contract.PlannedJob{{Object: "Job shop/migrate", Why: "what it does has changed"}},
		Git:          contract.PlannedGit{Repository: "slipway/platform", Changed: []string{"apps/web.yaml"}},
		Applications: []contract.PlannedObject{{Action: contract.PlanChange, Kind: "Application", Namespace: "argocd", Name: "web", Note: "why"}},
		Images:       contract.PlannedImages{Added: []string{"new"}, Removed: []string{"old"}},
		Unknown:      []contract.PlannedUnknown{{What: "a/b", Why: "it waits"}},
		Destructive:  []string{"removes Namespace old, with its data"},
	}
	var b strings.Builder
	require.NoError(t, p.Text(&b))
	require.Equal(t, `Plan of install for deployment blue
Release: shop 1.0.0

Configuration:
  ~ global.domain: "a" → "b"

Terraform:
  replace a.b
      ~ id: "1" → (known after apply)

Objects:
  + Secret shop/db
      + data.password: "generated"
  - Namespace old

Jobs that would run:
  Job shop/migrate: what it does has changed

Files that would be pushed to slipway/platform:
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
		PlannedChange: contract.PlannedChange{
			Style: contract.InPlace, Configuration: []contract.Difference{{Path: "a.b", Old: "1"}},
			Components: []contract.PlannedComponent{{Action: contract.PlanAdd, Name: "page", Kind: "app"}, {Action: contract.PlanRemove, Name: "site", Kind: "app"}},
			Backups:    []contract.PlannedBackup{{Data: "orders", Made: "20260102-030405-aaaaaa"}, {Data: "users"}},
			Migrations: []contract.PlannedMigration{{Name: "split", Data: "orders", When: "before", Stops: []string{"Deployment shop/web"}}, {Name: "trim", Data: "orders", When: "after", Undo: true}},
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
  split of orders, before the components; stopped meanwhile: Deployment shop/web; only the backup leads back
  trim of orders, after the components

0 to add, 0 to change, 0 to remove, 0 unchanged; 1 setting differs; 2 backups are made; 2 migrations are carried out; 1 upgrade follows
digest sha256:1
`, b.String())
}

// TestNamesWithLineBreaksAddNoLineToAPlan: anyone with rights in a namespace can make a Role of any name.
func TestNamesWithLineBreaksAddNoLineToAPlan(t *testing.T) {
	const name = "x\nerror FAKE-001: forged"
	p := &contract.Plan{
		Objects:     []contract.PlannedObject{{Action: contract.PlanRemove, Kind: "Role", Namespace: "team", Name: name, Note: name}},
		Jobs:        []contract.PlannedJob{{Object: name, Why: name}},
		Unknown:     []contract.PlannedUnknown{{What: name, Why: name}},
		Refused:     []contract.PlannedUnknown{{What: name, Why: name, Fix: name}},
		Destructive: []string{"removes Role team/" + name},
	}
	var b strings.Builder
	require.NoError(t, p.Text(&b))
	require.Contains(t, b.String(), "  - Role team/x error FAKE-001: forged (x error FAKE-001: forged)\n")
	require.NotContains(t, b.String(), "\nerror")
}
