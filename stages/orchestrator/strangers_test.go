package orchestrator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// answers has Argo CD bring the app web, and compare each Application at once.
func answers(t *testing.T, api *kubetest.API) {
	t.Helper()
	second := 0
	api.Controller = func(path string, o map[string]any) {
		second++
		children := []any{}
		if path == atRoot {
			children = append(children, map[string]any{"group": "argoproj.io", "kind": "Application", "namespace": "cd", "name": "web"})
		}
		notes, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
		delete(notes, argo.RefreshAnnotation)
		o["status"] = map[string]any{
			"sync": map[string]any{"status": "Synced", "revision": revision}, "health": map[string]any{"status": "Healthy"},
			"reconciledAt": fmt.Sprintf("2026-01-02T03:%02d:%02dZ", second/60, second%60), "resources": children,
		}
	}
	api.Set(t, atWeb, "{metadata: {name: web, namespace: cd}, spec: {project: platform}, status: {sync: {status: Synced, revision: "+revision+"}, health: {status: Healthy}, reconciledAt: '2026-01-02T03:00:00Z'}}")
}

func appsInput() contract.AppsInput {
	in := contract.AppsInput{Tree: theirs(), Apps: []string{"web"}}
	in.Revision = revision
	return in
}

// TestTheRootKeepsNothingThatAPushAdded: neither fields nor what has Argo CD treat it in
// another way. A plan shows that, and a dry run changes nothing.
func TestTheRootKeepsNothingThatAPushAdded(t *testing.T) {
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	answers(t, api)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := runSync(ctx, env, appsInput())
	require.NoError(t, err)
	clean := api.Get(atRoot)
	written := len(api.Writes())
	_, err = step.Unchanged(runSync)(ctx, env, appsInput())
	require.NoError(t, err)
	for _, w := range api.Writes()[written:] { // refreshes, which a dry run may ask for
		require.Contains(t, w, "PATCH ")
	}

	const added = `{metadata: {annotations: {argocd.argoproj.io/skip-reconcile: "true", argocd.argoproj.io/tracking-id: "evil:argoproj.io/Application:cd/root", notified.notifications.argoproj.io: x}},
  spec: {source: {helm: {valuesObject: {domain: evil.example}}}, ignoreDifferences: [{kind: Deployment}]}}`
	api.Set(t, atRoot, added)
	dirty := api.Get(atRoot)
	_, err = step.Unchanged(runSync)(ctx, env, appsInput())
	require.ErrorIs(t, err, plan.ErrChange)
	p := &plan.Plan{}
	_, err = runSync(ctx, env.Planned(p.Of("orchestrator/sync")), appsInput())
	require.NoError(t, err)
	require.Equal(t, dirty, api.Get(atRoot), "nothing was changed")
	planned, known := p.At(atRoot)
	require.True(t, known)
	require.Equal(t, clean["spec"], planned.After["spec"])
	require.Equal(t, "what others have added is taken back", planned.Why)

	_, err = runSync(ctx, env, appsInput())
	require.NoError(t, err)
	require.Equal(t, clean["spec"], api.Get(atRoot)["spec"])
	require.Equal(t, map[string]any{"notified.notifications.argoproj.io": "x"}, api.Get(atRoot)["metadata"].(map[string]any)["annotations"])
}

// TestTheRootIsAsAppliedOnceThePushIsGone: what was pushed may write to the root until Argo CD
// has removed it.
func TestTheRootIsAsAppliedOnceThePushIsGone(t *testing.T) {
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	answers(t, api)
	brings, times := api.Controller, 0
	api.Controller = func(path string, o map[string]any) {
		brings(path, o)
		if path == atRoot && times < 2 {
			times++
			o["spec"].(map[string]any)["ignoreDifferences"] = []any{"all"}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := runSync(ctx, env, appsInput())
	require.NoError(t, err)
	require.Equal(t, 2, times)
	require.NotContains(t, api.Get(atRoot)["spec"], "ignoreDifferences")
}

// TestAnApplicationThatAPushLeftBehindIsNamed: what has brought it is gone, and no other
// Application is mistaken for one.
func TestAnApplicationThatAPushLeftBehindIsNamed(t *testing.T) {
	api, c := withArgo(t)
	env := published(t, api.URL, "")
	text, err := os.ReadFile(env.PlatformDir + "/" + platform.File)
	require.NoError(t, err)
	adopted := strings.Replace(string(text), "components:\n", "components:\n  - {name: eso, kind: adopted, path: gitops/eso, namespace: shop, required: true}\n", 1)
	require.NoError(t, os.WriteFile(env.PlatformDir+"/"+platform.File, []byte(adopted), 0o600))
	require.NoError(t, os.MkdirAll(env.PlatformDir+"/gitops/eso", 0o700))
	require.NoError(t, os.WriteFile(env.PlatformDir+"/gitops/eso/Chart.yaml", []byte("name: eso"), 0o600))
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	require.NoError(t, err)
	_, err = runProjects(t.Context(), env, contract.ProjectsInput{Tree: theirs()})
	require.NoError(t, err)
	const apps = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/"
	set := func(name, by, more string) {
		mark := ""
		if by != "" {
			mark = `, annotations: {argocd.argoproj.io/tracking-id: "` + by + `:argoproj.io/Application:cd/` + name + `"}, managedFields: [{manager: argocd-controller}]`
		}
		api.Set(t, apps+name, `{metadata: {name: "`+name+`", namespace: cd`+mark+`}, spec: {project: platform}}`)
		if more != "" {
			api.Set(t, apps+name, more)
		}
	}
	children := func(names ...string) string {
		return `{status: {resources: [{group: argoproj.io, kind: Application, namespace: cd, name: ` + strings.Join(names, `}, {group: argoproj.io, kind: Application, namespace: cd, name: `) + `}]}}`
	}
	set("root", "", `spec: {project: slipway-root}`)
	set("web", "root", children("nested"))
	set("nested", "web", "") // an app of apps
	set("eso", "evil", "")   // written to by what was pushed, and Slipway's nevertheless
	set("dropped", "", `{metadata: {labels: {slipway.sh/adopted: component}}, spec: {project: slipway-adopted-dropped}}`)
	set("generated", "evil", `metadata: {ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: addons, uid: u, controller: true}]}`)
	set("by-hand", "", children("of-by-hand"))
	set("of-by-hand", "by-hand", "")
	set("elsewhere", "gone", `spec: {project: team}`)
	set("going", "gone", `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x]}`)
	require.NoError(t, noStrangers(t.Context(), c, "demo", r, appsInput()))

	set("evil-stays", "evil", children("evil-too"))
	set("evil-too", "evil-stays", `spec: {project: slipway-root}`)
	set("evil-later", "evil", `spec: {project: slipway-probe}`)
	set("evil's", "root", "") // the root names it no more
	before := len(api.Writes())
	err = noStrangers(t.Context(), c, "demo", r, appsInput())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSet})
	require.ErrorContains(t, err, "no apps of the release: evil's, evil-later, evil-stays, evil-too; a push")
	f, _ := fault.Whole(err)
	require.Contains(t, f.Fix, `slipway toolchain -- kubectl delete application -n cd 'evil'\''s' evil-later evil-stays evil-too;`)
	require.Len(t, api.Writes(), before)

	answers(t, api)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = runSync(ctx, env, appsInput())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSet}, "the install")
}
