package incontainer

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const canary = "canary-4711-in-a-secret"

func object(kind, name string, more map[string]any) map[string]any {
	out := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "uid": kind + name, "resourceVersion": "7"}}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// made is a plan of a Deployment, a Secret and a pushed tree; change may make it another one.
func made(t *testing.T, change func(*plan.Plan, *contract.Plan)) *contract.Plan {
	t.Helper()
	seen := &plan.Plan{}
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	seen.Of("orchestrator/web").Put("/d", object("Deployment", "web", map[string]any{"spec": map[string]any{"replicas": float64(1)}}),
		object("Deployment", "web", map[string]any{"spec": map[string]any{"replicas": float64(2)}, "status": map[string]any{"at": "now"}}), "")
	seen.Of("preorchestrator/secrets").Put("/s", object("Secret", "db", map[string]any{"data": map[string]any{"password": "b2xk"}}),
		object("Secret", "db", map[string]any{"data": map[string]any{"password": encoded}}), "")
	seen.Of("orchestrator/web").Put("/m", nil, object("ConfigMap", "copy", map[string]any{"data": map[string]any{"url": "https://u:" + canary + "@h"}}), "")
	seen.Of("orchestrator/web").Put("/g", nil, object("Secret", "made", map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte("random-1"))}}), "")
	seen.Of("orchestrator/web").Label("random-1", "generated")
	seen.Of("orchestrator/web").Note(contract.PlanBasis{Terraform: "l 3"})
	seen.Of("orchestrator/web").Note(contract.PlanBasis{Git: "slipway/platform@c1"})
	seen.Of("orchestrator/web").Note(contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: "Job shop/migrate", Note: "it has not been carried out"})
	out := &contract.Plan{Workflow: "install", Deployment: "blue", Release: contract.PlannedRelease{Name: "shop", From: "1.0.0", To: "1.0.0"},
		Basis: contract.PlanBasis{Configuration: "c", Release: "r", Tools: "t", Objects: map[string]string{}}}
	if change != nil {
		change(seen, out)
	}
	(&maker{Seen: seen, Salt: []byte("salt")}).Fill(out)
	require.NoError(t, out.Seal())
	return out
}

func TestAPlanOfWhatStepsWouldDo(t *testing.T) {
	p := made(t, nil)
	require.Equal(t, p.Digest, made(t, nil).Digest, "it is told from others by its content")
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", p.Digest)
	require.Equal(t, []contract.Difference{{Path: "spec.replicas", Old: "1", New: "2"}}, p.Changes[1].Fields)
	require.Equal(t, "Deployment shop/web", p.Changes[1].Name)
	require.Equal(t, "Job shop/migrate", p.Changes[4].Name)
	secret := p.Changes[2]
	require.Equal(t, "Secret shop/db", secret.Name)
	require.Regexp(t, `^"digest [0-9a-f]{12}"$`, secret.Fields[0].New)
	require.NotEqual(t, secret.Fields[0].Old, secret.Fields[0].New)
	made := p.Changes[3]
	require.Equal(t, []contract.Difference{{Path: "data.token", New: `"generated"`}}, made.Fields)
	require.False(t, p.Empty())
}

// TestWhatAnUpgradeTakesAway, the first one or a later one of its path.
func TestWhatAnUpgradeTakesAway(t *testing.T) {
	p := made(t, func(seen *plan.Plan, p *contract.Plan) {
		seen.Of("orchestrator/web").Note(contract.PlannedStyle(contract.InPlace))
		seen.Of("orchestrator/sync").Put("/b", object("Application", "guestbook", nil), nil, "")
	})
	require.Equal(t, contract.PlannedChange{
		Of: contract.PlanApplications, Action: contract.PlanRemove, Name: "Application shop/guestbook", Step: "orchestrator/sync", Destroys: "removes Application shop/guestbook",
	}, p.Changes[len(p.Changes)-1])
	require.Equal(t, contract.InPlace, p.Style)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Contains(t, string(text), `"later":[]`, "what is empty is a list")
}

// TestAnObjectThatNobodyCanTryOut is neither changed nor as it should be, and may be edited
// before the run.
func TestAnObjectThatNobodyCanTryOut(t *testing.T) {
	without := made(t, nil)
	p := made(t, func(seen *plan.Plan, _ *contract.Plan) {
		seen.Of("orchestrator/web").Doubt("/n", object("Ingress", "web", nil), object("Ingress", "web", nil), "the webhook takes no dry runs")
		seen.Of("orchestrator/web").Doubt("/i", nil, object("Ingress", "new", nil), "the webhook takes no dry runs")
	})
	require.Equal(t, []contract.PlannedUnknown{
		{What: "Ingress shop/new", Why: "the webhook takes no dry runs"}, {What: "Ingress shop/web", Why: "the webhook takes no dry runs"},
	}, p.Unknown)
	require.Len(t, p.Changes, len(without.Changes))
	require.Equal(t, without.Unchanged, p.Unchanged)
	require.Contains(t, p.Basis.Objects, "Ingress shop/web")
}

// TestAPlanHasNoSecret: neither a Secret's value nor what has it in it.
func TestAPlanHasNoSecret(t *testing.T) {
	text, err := json.Marshal(made(t, func(seen *plan.Plan, _ *contract.Plan) {
		seen.Of("s").Put("/c", object("ConfigMap", "c", map[string]any{"data": map[string]any{"k": "v"}}), object("ConfigMap", "c", map[string]any{"data": map[string]any{"k": "x " + canary}}), "")
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
		return made(t, func(seen *plan.Plan, _ *contract.Plan) {
			seen.Of("orchestrator/sync").Put("/j", nil, object("Job", "rows", map[string]any{"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"batch.kubernetes.io/controller-uid": uid}},
				"template": map[string]any{"metadata": map[string]any{"labels": chosen}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}},
			}}), "")
			seen.Of("orchestrator/sync").Put("/v", nil, object("Service", "svc", map[string]any{"spec": map[string]any{
				"clusterIP": uid, "ports": []any{map[string]any{"port": int64(80), "nodePort": port}},
			}}), "")
		})
	}
	was := with("1", 30001, "a")
	require.Equal(t, was.Digest, with("2", 30002, "a").Digest)
	require.Equal(t, []string{"what would be done to Job shop/rows is something else"}, stale(was, with("2", 30002, "b")))
}

// TestWhatMakesAPlanStale: each is named.
func TestWhatMakesAPlanStale(t *testing.T) {
	was := made(t, nil)
	require.Empty(t, stale(was, made(t, nil)))
	for name, c := range map[string]struct {
		change func(*plan.Plan, *contract.Plan)
		says   string
	}{
		"object": {func(seen *plan.Plan, _ *contract.Plan) {
			seen.Of("s").Put("/d2", nil, nil, "")
			seen.Of("orchestrator/web").Amend(object("Deployment", "web", nil), object("Deployment", "web", map[string]any{"spec": map[string]any{"replicas": float64(9)}}), "")
		}, "what would be done to Deployment shop/web is something else"},
		"edited": {func(seen *plan.Plan, _ *contract.Plan) {
			seen.Of("s").Put("/e", object("Service", "svc", nil), object("Service", "svc", nil), "")
		}, "Service shop/svc was added"},
		"configuration": {func(_ *plan.Plan, p *contract.Plan) { p.Basis.Configuration = "other" }, "the configuration has changed"},
		"terraform": {func(seen *plan.Plan, _ *contract.Plan) {
			seen.Of("x").Note(contract.PlanBasis{Terraform: "l 4"})
		}, "the Terraform state has moved on: it is l 4, not l 3"},
		"git": {func(seen *plan.Plan, _ *contract.Plan) {
			seen.Of("x").Note(contract.PlanBasis{Git: "slipway/platform@c2"})
		}, "somebody has pushed to the Git repository slipway/platform: it is c2, not c1"},
		"style":   {func(_ *plan.Plan, p *contract.Plan) { p.Style = contract.InPlace }, "the style is in-place, not none"},
		"release": {func(_ *plan.Plan, p *contract.Plan) { p.Basis.Release, p.Release.To = "r2", "1.1.0" }, "the platform release is shop 1.1.0, not shop 1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			why := stale(was, made(t, c.change))
			require.Contains(t, why[0], c.says)
		})
	}
	now := made(t, nil)
	now.Basis.Objects["Deployment shop/web"] = "other"
	require.NoError(t, now.Seal())
	require.Equal(t, []string{"Deployment shop/web was edited"}, stale(was, now))
}

// TestAPlanOfAnotherRelease says so first: what else is not as planned may come of that.
func TestAPlanOfAnotherRelease(t *testing.T) {
	was := made(t, nil)
	now := made(t, func(_ *plan.Plan, p *contract.Plan) {
		p.Basis.Configuration, p.Basis.Release, p.Release.To = "other", "other", "9.9.9"
	})
	why := stale(was, now)
	require.Contains(t, why[0], "the platform release is shop 9.9.9")
	require.Equal(t, []string{"the content of the platform release has changed", "the configuration has changed"}, why[1:3])
}

func TestDifferencesByPath(t *testing.T) {
	parse := func(text string) any {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		return v
	}
	show := asText
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
		require.Equal(t, c.want, diffOf(parse(c.a), parse(c.b), show))
	}
}
