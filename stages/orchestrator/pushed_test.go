package orchestrator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
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
	_, err = runSync(dryrun.Context(ctx), env, appsInput())
	require.NoError(t, err)
	for _, w := range api.Writes()[written:] { // refreshes, which a dry run may ask for
		require.Contains(t, w, "PATCH ")
	}

	const added = `{metadata: {annotations: {argocd.argoproj.io/skip-reconcile: "true", argocd.argoproj.io/tracking-id: "evil:argoproj.io/Application:cd/root", notified.notifications.argoproj.io: x}},
  spec: {source: {helm: {valuesObject: {domain: evil.example}}}, ignoreDifferences: [{kind: Deployment}]}}`
	api.Set(t, atRoot, added)
	dirty := api.Get(atRoot)
	_, err = runSync(dryrun.Context(ctx), env, appsInput())
	require.ErrorIs(t, err, dryrun.ErrWouldChange)
	p := &dryrun.Preview{}
	_, err = runSync(p.Watch(ctx, "orchestrator/sync"), env, appsInput())
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
