package preview_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/preview"
)

const canary = "canary-4711-in-a-secret"

func object(kind, name string, more map[string]any) map[string]any {
	out := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "uid": kind + name, "resourceVersion": "7"}}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// plan is one of a Deployment, a Secret and a pushed tree; change may make it another one.
func plan(t *testing.T, change func(*dryrun.Preview, *contract.Plan)) *contract.Plan {
	t.Helper()
	seen := &dryrun.Preview{}
	ctx := seen.Watch(t.Context(), "orchestrator/web")
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	seen.Put("/d", "orchestrator/web", object("Deployment", "web", map[string]any{"spec": map[string]any{"replicas": float64(1)}}),
		object("Deployment", "web", map[string]any{"spec": map[string]any{"replicas": float64(2)}, "status": map[string]any{"at": "now"}}), "")
	seen.Put("/s", "preorchestrator/secrets", object("Secret", "db", map[string]any{"data": map[string]any{"password": "b2xk"}}),
		object("Secret", "db", map[string]any{"data": map[string]any{"password": encoded}}), "")
	seen.Put("/m", "orchestrator/web", nil, object("ConfigMap", "copy", map[string]any{"data": map[string]any{"url": "https://u:" + canary + "@h"}}), "")
	seen.Put("/g", "orchestrator/web", nil, object("Secret", "made", map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte("random-1"))}}), "")
	dryrun.Label(ctx, "random-1", "generated")
	dryrun.Tell(ctx, contract.PlannedTerraform{Lineage: "l", Serial: 3})
	dryrun.Tell(ctx, contract.PlannedGit{Repository: "slipway/platform", Revision: "c1"})
	dryrun.Tell(ctx, contract.PlannedJob{Object: "Job shop/migrate", Why: "it has not been carried out"})
	out := &contract.Plan{Workflow: "install", Deployment: "blue", Release: contract.PlannedRelease{Name: "shop", From: "1.0.0", To: "1.0.0"},
		Basis: contract.PlanBasis{Configuration: "c", Release: "r", Tools: "t", Objects: map[string]string{}}}
	if change != nil {
		change(seen, out)
	}
	(&preview.Maker{Seen: seen, Salt: []byte("salt")}).Fill(out)
	require.NoError(t, out.Seal())
	return out
}

func TestAPlanOfWhatStepsWouldDo(t *testing.T) {
	p := plan(t, nil)
	require.Equal(t, p.Digest, plan(t, nil).Digest, "it is told from others by its content")
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", p.Digest)
	require.Equal(t, []contract.Difference{{Path: "spec.replicas", Old: "1", New: "2"}}, p.Objects[1].Fields)
	require.Equal(t, "Deployment shop/web", p.Objects[1].String())
	require.Equal(t, "Job shop/migrate", p.Jobs[0].Object)
	secret := p.Objects[2]
	require.Equal(t, "Secret shop/db", secret.String())
	require.Regexp(t, `^"digest [0-9a-f]{12}"$`, secret.Fields[0].New)
	require.NotEqual(t, secret.Fields[0].Old, secret.Fields[0].New)
	made := p.Objects[3]
	require.Equal(t, []contract.Difference{{Path: "data.token", New: `"generated"`}}, made.Fields)
	require.True(t, p.Changes())
}

// TestWhatAnUpgradeTakesAway, the first one or a later one of its path.
func TestWhatAnUpgradeTakesAway(t *testing.T) {
	p := plan(t, func(seen *dryrun.Preview, p *contract.Plan) {
		ctx := seen.Watch(t.Context(), "preorchestrator/migrate-before")
		dryrun.Tell(ctx, contract.PlannedStyle(contract.InPlace))
		dryrun.Tell(ctx, contract.PlannedBackup{Data: "orders"})
		dryrun.Tell(ctx, contract.PlannedMigration{Name: "split", Data: "orders"})
		seen.Put("/b", "orchestrator/sync", object("Application", "guestbook", nil), nil, "")
	})
	require.Equal(t, []string{
		"migration split of orders cannot be taken back: a rollback puts the backup in the place of the data",
		"removes Application shop/guestbook",
	}, p.Destructive)
	require.Equal(t, contract.InPlace, p.Style)
	require.Equal(t, []contract.PlannedBackup{{Data: "orders"}}, p.Backups)
	require.Equal(t, "split", p.Migrations[0].Name)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Contains(t, string(text), `"later":[]`, "what is empty is a list")
}

// TestAnObjectThatNobodyCanTryOut is neither changed nor as it should be, and may be edited
// before the run.
func TestAnObjectThatNobodyCanTryOut(t *testing.T) {
	without := plan(t, nil)
	p := plan(t, func(seen *dryrun.Preview, _ *contract.Plan) {
		seen.Doubt("/n", "orchestrator/web", object("Ingress", "web", nil), object("Ingress", "web", nil), "the webhook takes no dry runs")
		seen.Doubt("/i", "orchestrator/web", nil, object("Ingress", "new", nil), "the webhook takes no dry runs")
	})
	require.Equal(t, []contract.PlannedUnknown{
		{What: "Ingress shop/new", Why: "the webhook takes no dry runs"}, {What: "Ingress shop/web", Why: "the webhook takes no dry runs"},
	}, p.Unknown)
	require.Len(t, p.Objects, len(without.Objects))
	require.Equal(t, without.Unchanged, p.Unchanged)
	require.Contains(t, p.Basis.Objects, "Ingress shop/web")
}

// TestAPlanHasNoSecret: neither a Secret's value nor what has it in it.
func TestAPlanHasNoSecret(t *testing.T) {
	text, err := json.Marshal(plan(t, func(seen *dryrun.Preview, _ *contract.Plan) {
		seen.Put("/c", "s", object("ConfigMap", "c", map[string]any{"data": map[string]any{"k": "v"}}), object("ConfigMap", "c", map[string]any{"data": map[string]any{"k": "x " + canary}}), "")
	}))
	require.NoError(t, err)
	require.NotContains(t, string(text), canary)
	require.NotContains(t, string(text), base64.StdEncoding.EncodeToString([]byte(canary)))
	require.Contains(t, string(text), "ConfigMap")
}

// TestWhatTheAPIServerChooses when an object is made is another one in each dry run.
func TestWhatTheAPIServerChooses(t *testing.T) {
	with := func(uid string, port int64, image string) *contract.Plan {
		chosen := map[string]any{"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid, "app": "rows"}
		return plan(t, func(seen *dryrun.Preview, _ *contract.Plan) {
			seen.Put("/j", "orchestrator/sync", nil, object("Job", "rows", map[string]any{"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"batch.kubernetes.io/controller-uid": uid}},
				"template": map[string]any{"metadata": map[string]any{"labels": chosen}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}},
			}}), "")
			seen.Put("/v", "orchestrator/sync", nil, object("Service", "svc", map[string]any{"spec": map[string]any{
				"clusterIP": uid, "ports": []any{map[string]any{"port": int64(80), "nodePort": port}},
			}}), "")
		})
	}
	was := with("1", 30001, "a")
	require.Equal(t, was.Digest, with("2", 30002, "a").Digest)
	require.Equal(t, []string{"what would be done to Job shop/rows is something else"}, preview.Stale(was, with("2", 30002, "b")))
}

// TestWhatMakesAPlanStale: each is named.
func TestWhatMakesAPlanStale(t *testing.T) {
	was := plan(t, nil)
	require.Empty(t, preview.Stale(was, plan(t, nil)))
	for name, c := range map[string]struct {
		change func(*dryrun.Preview, *contract.Plan)
		says   string
	}{
		"object": {func(seen *dryrun.Preview, _ *contract.Plan) {
			seen.Put("/d2", "s", nil, nil, "")
			seen.Amend(object("Deployment", "web", nil), "orchestrator/web", object("Deployment", "web", map[string]any{"spec": map[string]any{"replicas": float64(9)}}), "")
		}, "what would be done to Deployment shop/web is something else"},
		"edited": {func(seen *dryrun.Preview, _ *contract.Plan) {
			seen.Put("/e", "s", object("Service", "svc", nil), object("Service", "svc", nil), "")
		}, "Service shop/svc is there now"},
		"configuration": {func(_ *dryrun.Preview, p *contract.Plan) { p.Basis.Configuration = "other" }, "the configuration is another one"},
		"terraform": {func(seen *dryrun.Preview, _ *contract.Plan) {
			dryrun.Tell(seen.Watch(t.Context(), "x"), contract.PlannedTerraform{Lineage: "l", Serial: 4})
		}, "the Terraform state has moved on: serial 4, not 3"},
		"git": {func(seen *dryrun.Preview, _ *contract.Plan) {
			dryrun.Tell(seen.Watch(t.Context(), "x"), contract.PlannedGit{Repository: "slipway/platform", Revision: "c2"})
		}, "somebody has pushed to the Git repository slipway/platform: it is at c2, not at c1"},
		"style":   {func(_ *dryrun.Preview, p *contract.Plan) { p.Style = contract.InPlace }, "the plan is one in style none, not in style in-place"},
		"release": {func(_ *dryrun.Preview, p *contract.Plan) { p.Basis.Release, p.Release.To = "r2", "1.1.0" }, "the platform release is another one: shop 1.1.0, not shop 1.0.0 as planned"},
	} {
		t.Run(name, func(t *testing.T) {
			why := preview.Stale(was, plan(t, c.change))
			require.Contains(t, why[0], c.says)
		})
	}
	now := plan(t, nil)
	now.Basis.Objects["Deployment shop/web"] = "other"
	require.NoError(t, now.Seal())
	require.Equal(t, []string{"Deployment shop/web was edited"}, preview.Stale(was, now))
}

// TestAPlanOfAnotherRelease says so first: what else is not as planned may come of that.
func TestAPlanOfAnotherRelease(t *testing.T) {
	was := plan(t, nil)
	now := plan(t, func(_ *dryrun.Preview, p *contract.Plan) {
		p.Basis.Configuration, p.Basis.Release, p.Release.To = "other", "other", "9.9.9"
	})
	why := preview.Stale(was, now)
	require.Contains(t, why[0], "the platform release is another one")
	require.Contains(t, why[1], "the configuration is another one")
}

// TestAStalePlanNamesTheSettings of the configuration, as they were planned and as they are.
func TestAStalePlanNamesTheSettings(t *testing.T) {
	with := func(all ...contract.Difference) *contract.Plan {
		return plan(t, func(_ *dryrun.Preview, p *contract.Plan) {
			p.Basis.Configuration, p.Configuration = fmt.Sprint(all), all
		})
	}
	was := with(contract.Difference{Path: "a", Old: "1", New: "2"}, contract.Difference{Path: "b", Old: "1", New: "2"}, contract.Difference{Path: "e", Old: "1", New: "2"})
	now := with(contract.Difference{Path: "a", Old: "1", New: "3"}, contract.Difference{Path: "c", New: `"x"`}, contract.Difference{Path: "e", Old: "1", New: "2"})
	require.Equal(t, `the configuration is another one (planned, and not so now: a: 1 → 2, b: 1 → 2; not planned: a: 1 → 3, c: none → "x")`, preview.Stale(was, now)[0])
	require.Equal(t, `the configuration is another one (planned, and not so now: a: 1 → 3, c: none → "x"; not planned: a: 1 → 2, b: 1 → 2)`, preview.Stale(now, was)[0])
}

func TestDifferencesByPath(t *testing.T) {
	parse := func(text string) any {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		return v
	}
	show := preview.Shown
	for _, c := range []struct {
		a, b string
		want []contract.Difference
	}{
		{`{"a":{"b":1}}`, `{"a":{"b":2},"c":"x"}`, []contract.Difference{{Path: "a.b", Old: "1", New: "2"}, {Path: "c", New: `"x"`}}},
		{`{"l":[{"name":"web","image":"1"},{"name":"side"}]}`, `{"l":[{"name":"web","image":"2"}]}`, []contract.Difference{{Path: "l[side]", Old: `{"name":"side"}`}, {Path: "l[web].image", Old: `"1"`, New: `"2"`}}},
		{`{"l":[1,2]}`, `{"l":[1,3]}`, []contract.Difference{{Path: "l[1]", Old: "2", New: "3"}}},
		{`{"m":{"a.b/c":"1"}}`, `{"m":{}}`, []contract.Difference{{Path: "m[a.b/c]", Old: `"1"`}}},
		{`{"a":1}`, `{"a":1}`, nil},
	} {
		require.Equal(t, c.want, preview.Diff(parse(c.a), parse(c.b), show))
	}
}
