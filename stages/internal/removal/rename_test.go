package removal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

const (
	atLists = "/api/v1/namespaces/slipway-system/configmaps/"
	atApps  = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/"
)

func TestRenames(t *testing.T) {
	before := &platform.Release{Components: []platform.Component{{Name: "web", Kind: platform.App}, {Name: "database", Kind: platform.App}}}
	after := &platform.Release{Components: []platform.Component{{Name: "web", Kind: platform.App}, {Name: "postgresql", Kind: platform.App, RenamedFrom: "database"}}}
	require.Empty(t, removal.Renames(before, removal.Record{}))
	require.Equal(t, []removal.Renaming{{From: "database", To: "postgresql"}}, removal.Renames(after, removal.RecordOf(before)))
	known := removal.RecordOf(after)
	require.Equal(t, []removal.Renaming{{From: "database", To: "postgresql"}}, removal.Renames(after, known), "a run that goes on")
	require.Equal(t, []removal.Renaming{{From: "postgresql", To: "database"}}, removal.Renames(before, known), "back again")
	known = removal.RecordOf(before).Following(known)
	require.Equal(t, []removal.Renaming{{From: "postgresql", To: "database"}}, removal.Renames(before, known), "back again, in a run that goes on")
}

// TestTheListsOfARenamedComponent go on under its present name, whenever a run was killed.
func TestTheListsOfARenamedComponent(t *testing.T) {
	api, r := on(t)
	apply(t, r, "web", "one", "two")
	apply(t, r, "page", "two", "three")
	require.NoError(t, r.Client.KeepNotes(t.Context(), "demo", "web-jobs", map[string]string{"shop.index": "digest", "shop.fill": "old"}))
	require.NoError(t, r.Client.KeepNotes(t.Context(), "demo", "page-jobs", map[string]string{"shop.fill": "new"}))
	renames := []removal.Renaming{{From: "web", To: "page"}, {From: "never", To: "ever"}}
	require.ErrorIs(t, removal.MoveLists(dryrun.Context(t.Context()), r.Client, "demo", renames), dryrun.ErrWouldChange)
	require.NotNil(t, api.Get(atLists+"web-objects"))

	require.NoError(t, removal.MoveLists(t.Context(), r.Client, "demo", renames))
	members, err := r.Client.Members(t.Context(), kube.ObjectsOf("page"))
	require.NoError(t, err)
	var names []string
	for _, m := range members {
		names = append(names, m.String())
	}
	require.ElementsMatch(t, []string{"ConfigMap shop/one", "ConfigMap shop/two", "ConfigMap shop/three", "PersistentVolumeClaim shop/web", "PersistentVolumeClaim shop/page"}, names)
	jobs, err := r.Client.Notes(t.Context(), kube.JobsOf("page"), "jobs")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"shop.index": "digest", "shop.fill": "new"}, jobs)
	require.Nil(t, api.Get(atLists+"web-objects"))
	require.Nil(t, api.Get(atLists+"web-jobs"))
	require.Nil(t, api.Get(atLists+"ever-objects"))
	require.NoError(t, removal.MoveLists(dryrun.Context(t.Context()), r.Client, "demo", renames), "once is enough")

	components, _, err := r.Dropped(t.Context(), []removal.Component{{Name: "web", Namespace: "shop"}, {Name: "page", Namespace: "shop"}}, []string{"page"}, nil)
	require.NoError(t, err)
	require.Empty(t, components)
	require.NotNil(t, api.Get("/api/v1/namespaces/shop/configmaps/one"))
}

// TestAChartThatIsRenamed keeps its Helm release, also on the way back.
func TestAChartThatIsRenamed(t *testing.T) {
	api, r := on(t)
	installed(t, r, "shop", "web", map[string]string{kube.DeploymentLabel: "demo"}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/web", "metadata: {name: web, "+label+"}")
	before := removal.RecordOf(&platform.Release{Components: []platform.Component{{Name: "web", Kind: platform.Chart, Namespace: "shop"}}})
	after := removal.RecordOf(&platform.Release{Components: []platform.Component{{Name: "page", RenamedFrom: "web", Kind: platform.Chart, Namespace: "shop"}}})
	require.Equal(t, []removal.Component{{Name: "page", Namespace: "shop", Release: "web"}}, after.Following(before).Components, "it is the same")
	require.Equal(t, before.Components, before.Following(after).Components, "and back")

	components, _, err := r.Dropped(t.Context(), after.Following(before).Components, []string{"page"}, nil)
	require.NoError(t, err)
	require.Empty(t, components)
	components, objects, err := r.Dropped(t.Context(), after.Components, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"page"}, components, "it is removed as any other")
	require.Equal(t, []string{"ConfigMap shop/web"}, objects)
}

// TestAnApplicationThatAnotherSucceeds goes without what it brought.
func TestAnApplicationThatAnotherSucceeds(t *testing.T) {
	api, r := on(t)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Define("argoproj.io/v1alpha1", "AppProject", true)
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/appprojects/default", "{metadata: {name: default, namespace: cd}, spec: {destinations: [{namespace: shop}]}}")
	app := "{metadata: {name: old, namespace: cd, finalizers: [resources-finalizer.argocd.argoproj.io]}, spec: {syncPolicy: {automated: {prune: true}}}, status: {resources: [" +
		"{version: v1, kind: ConfigMap, namespace: shop, name: a}, {version: v1, kind: ConfigMap, namespace: shop, name: b}, {version: v1, kind: ConfigMap, namespace: shop, name: gone}, " +
		"{version: v1, kind: ConfigMap, namespace: team, name: a}]}}"
	api.Set(t, atApps+"old", app)
	const id = "argocd.argoproj.io/tracking-id"
	api.Set(t, "/api/v1/namespaces/shop/configmaps/a", `metadata: {name: a, namespace: shop, annotations: {`+id+`: "old:/ConfigMap:shop/a"}}`)
	api.Set(t, "/api/v1/namespaces/shop/configmaps/b", `metadata: {name: b, namespace: shop, annotations: {`+id+`: "older:/ConfigMap:shop/b"}}`)
	const theirs = "/api/v1/namespaces/team/configmaps/a"
	api.Set(t, theirs, `metadata: {name: a, namespace: team, annotations: {`+id+`: "old:/ConfigMap:team/a"}}`)
	before := api.Get(theirs)
	require.ErrorIs(t, removal.Succeed(dryrun.Context(t.Context()), r.Client, "cd", "old", "new"), dryrun.ErrWouldChange)
	require.NoError(t, removal.Succeed(t.Context(), r.Client, "cd", "old", "new"))
	require.Nil(t, api.Get(atApps+"old"))
	tracked := func(name string) any {
		return api.Get("/api/v1/namespaces/shop/configmaps/" + name)["metadata"].(map[string]any)["annotations"].(map[string]any)[id]
	}
	require.Equal(t, "new:/ConfigMap:shop/a", tracked("a"))
	require.Equal(t, before, api.Get(theirs), "the project lets the Application have nothing there: it is of another Argo CD")
	require.Equal(t, "older:/ConfigMap:shop/b", tracked("b"), "it is another one's by now")
	require.NoError(t, removal.Succeed(t.Context(), r.Client, "cd", "old", "new"), "it is gone")

	api.Set(t, atApps+"old", app)
	api.Set(t, atApps+"old", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}")
	err := removal.Succeed(t.Context(), r.Client, "cd", "old", "new")
	require.ErrorIs(t, err, &fault.Fault{Code: removal.CodeLeaving})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.NotNil(t, api.Get(atApps+"old"), "who deletes it wants it so")
}
