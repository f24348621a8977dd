package installed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

const (
	argoAPI  = "/apis/argoproj.io/v1alpha1/namespaces/shop/"
	byArgo   = "managedFields: [{manager: " + kube.ArgoManager + "}]"
	rolesAPI = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
)

// withSets is a cluster in which ApplicationSets of the deployment have made the Applications
// "a-x" of the set x and so on, and Argo CD's controller runs.
func withSets(t *testing.T, sets ...string) (*kubetest.API, *kube.Client) {
	t.Helper()
	api, client := shared(t)
	const controller = "{name: argocd-application-controller-0, namespace: shop, labels: {app.kubernetes.io/name: argocd-application-controller}}"
	api.Set(t, "/apis/apps/v1/namespaces/shop/statefulsets/argocd-application-controller", "metadata: "+controller)
	api.Set(t, "/api/v1/namespaces/shop/pods/argocd-application-controller-0", "{metadata: "+controller+", status: {conditions: [{type: Ready, status: \"True\"}]}}")
	for _, set := range sets {
		api.Set(t, argoAPI+"applicationsets/"+set, "metadata: {name: "+set+", namespace: shop, uid: set-"+set+", "+used+"}")
		api.Set(t, argoAPI+"applications/a-"+set, "{metadata: {name: a-"+set+", namespace: shop, uid: app-"+set+", ownerReferences: [{uid: set-"+set+"}]}, "+
			"status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: of-"+set+"}]}}")
		api.Set(t, rolesAPI+"of-"+set, "metadata: {name: of-"+set+", "+tracked("a-"+set, "rbac.authorization.k8s.io/ClusterRole:/of-"+set)+"}")
	}
	return api, client
}

// tracked is the mark of Argo CD on what an Application has brought.
func tracked(app, what string) string {
	return "annotations: {" + kube.TrackingID + ": '" + app + ":" + what + "'}"
}

// cascade acts as Argo CD's controller does: an Application that is being deleted goes with the
// role that it owns, but for those that are held by another finalizer.
func cascade(t *testing.T, api *kubetest.API, sets ...string) {
	t.Helper()
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for _, set := range sets {
				path := argoAPI + "applications/a-" + set
				meta, _ := api.Get(path)["metadata"].(map[string]any)
				if finalizers, _ := meta["finalizers"].([]any); meta["deletionTimestamp"] == nil || len(finalizers) != 1 {
					continue
				}
				api.Delete(rolesAPI + "of-" + set)
				api.Delete(path)
			}
		}
	}()
	t.Cleanup(func() { close(done); <-stopped })
}

// deletions are the paths that were deleted, of those that begin so.
func deletions(api *kubetest.API, prefix string) []string {
	var out []string
	for _, w := range api.Writes() {
		if path, ok := strings.CutPrefix(w, "DELETE "+prefix); ok {
			out = append(out, path)
		}
	}
	return out
}

func inOrder(sets ...string) func(*Removal) {
	return func(rec *Removal) {
		for _, s := range sets {
			rec.Remove.Applications = append(rec.Remove.Applications, platform.SetRemoval{Set: s})
		}
	}
}

// TestApplicationsOfSetsGoInTheOrderOfTheRelease: the sets first, and nothing with them; then
// the Applications of one after the other, each when those before it are gone.
func TestApplicationsOfSetsGoInTheOrderOfTheRelease(t *testing.T) {
	sets := []string{"a", "b", "c", "d"}
	api, client := withSets(t, sets...)
	cascade(t, api, sets...)
	record(t, client, inOrder("c", "never-made", "a"))
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"shop/a-c", "shop/a-a", "shop/a-b", "shop/a-d"}, out.Applications)
	require.Equal(t, []string{
		"applicationsets/a", "applicationsets/b", "applicationsets/c", "applicationsets/d",
		"applications/a-c", "applications/a-a", "applications/a-b", "applications/a-d",
	}, deletions(api, argoAPI))
	require.Empty(t, out.Stripped)
	for _, set := range sets {
		require.Nil(t, api.Get(rolesAPI+"of-"+set), "the cascade has taken it")
	}
	untouched(t, api)
	empty(t, client)
}

// TestARemovalThatWasKilledKeepsTheOrder: the sets are gone, and nothing in the cluster but
// Slipway's note says any more what they had made.
func TestARemovalThatWasKilledKeepsTheOrder(t *testing.T) {
	sets := []string{"a", "b"}
	api, client := withSets(t, sets...)
	record(t, client, inOrder("b", "a"))
	r := found(t, client)
	require.NoError(t, r.orphan(t.Context()))
	require.Nil(t, api.Get(argoAPI+"applicationsets/a"))
	require.NotNil(t, api.Get(argoAPI+"applications/a-a"))

	cascade(t, api, sets...)
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"shop/a-b", "shop/a-a"}, out.Applications)
	require.Nil(t, api.Get(rolesAPI+"of-a"), "it is the platform's, though it has no owner any more")
	empty(t, client)
}

// TestAnApplicationThatDoesNotGo is waited for until its own deadline; then its finalizers are
// removed, or named in the error. What it owns goes all the same.
func TestAnApplicationThatDoesNotGo(t *testing.T) {
	stuck := func(t *testing.T, then string) (*kubetest.API, *kube.Client) {
		t.Helper()
		api, client := withSets(t, "a", "b")
		cascade(t, api, "a", "b")
		api.Set(t, argoAPI+"applications/a-a", "metadata: {finalizers: [example.com/nobody]}")
		record(t, client, func(rec *Removal) {
			inOrder("a", "b")(rec)
			rec.Remove.Applications[0].Deadline = 1e9
			rec.Remove.Finalizers.After, rec.Remove.Finalizers.Then = 3600e9, then
		})
		return api, client
	}
	t.Run("and is stripped", func(t *testing.T) {
		api, client := stuck(t, platform.FinalizerStrip)
		begun := time.Now()
		out, err := removed(t.Context(), client, contract.RemoveInput{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), time.Second, "not before its deadline")
		require.Equal(t, []string{"Application shop/a-a: example.com/nobody, resources-finalizer.argocd.argoproj.io"}, out.Stripped)
		require.Equal(t, []string{"shop/a-a", "shop/a-b"}, out.Applications)
		require.Contains(t, out.Cluster, "ClusterRole/of-a", "no cascade has taken it")
		untouched(t, api)
		empty(t, client)
	})
	t.Run("or reported", func(t *testing.T) {
		api, client := stuck(t, platform.FinalizerReport)
		_, err := removed(t.Context(), client, contract.RemoveInput{})
		require.ErrorIs(t, err, &fault.Fault{Code: CodeStuck})
		require.ErrorContains(t, err, "Application shop/a-a: example.com/nobody")
		require.NotNil(t, api.Get(argoAPI+"applications/a-b"), "its turn has not come")
	})
}

// TestASetOfAUserTakesNothingAlong: what it made goes as any Application of a user's does.
func TestASetOfAUserTakesNothingAlong(t *testing.T) {
	api, client := withSets(t, "a")
	api.Set(t, argoAPI+"applicationsets/a", "metadata: {labels: {"+kube.DeploymentLabel+": null}}")
	cascade(t, api, "a")
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"shop/a-a"}, out.Applications)
	require.Equal(t, []string{"applicationsets/a", "applications/a-a"}, deletions(api, argoAPI))
	require.NotNil(t, api.Get(rolesAPI+"of-a"))
}

// TestWhatAnApplicationOfASetHasMade goes with it, and takes its own objects along, as that of
// any Application does.
func TestWhatAnApplicationOfASetHasMade(t *testing.T) {
	api, client := withSets(t, "a")
	cascade(t, api, "a")
	api.Set(t, argoAPI+"applications/a-a", "status: {resources: [{group: argoproj.io, kind: Application, namespace: shop, name: child}]}")
	api.Set(t, argoAPI+"applications/child", "{metadata: {name: child, namespace: shop, uid: child, "+tracked("a-a", "argoproj.io/Application:shop/child")+"}, "+
		"status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: of-child}]}}")
	api.Set(t, rolesAPI+"of-child", "metadata: {name: of-child, "+tracked("child", "rbac.authorization.k8s.io/ClusterRole:/of-child")+"}")
	r := found(t, client)
	require.NoError(t, r.sets(t.Context()))
	require.Nil(t, api.Get(argoAPI+"applications/a-a"))
	child, _ := api.Get(argoAPI + "applications/child")["metadata"].(map[string]any)
	require.Equal(t, []any{argo.CascadeFinalizer}, child["finalizers"], "else Argo CD would leave what it has")
	role, _ := api.Get(rolesAPI + "of-child")["metadata"].(map[string]any)
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, role["labels"])
}

// TestASetThatAnApplicationBringsBack does not hold the removal up: Argo CD makes again what is
// missing until that Application goes.
func TestASetThatAnApplicationBringsBack(t *testing.T) {
	api, client := withSets(t, "a")
	const set = argoAPI + "applicationsets/a"
	api.Set(t, set, "metadata: {finalizers: [example.com/until-it-is-back]}") // nobody sees it gone
	r := found(t, client)
	madeAgain(t, api, set)
	require.NoError(t, r.orphan(t.Context()))
	require.Equal(t, map[string]string{"shop/a-a": "a"}, r.record.Orphans)
}

// madeAgain acts as somebody who makes an object again each time that it is deleted.
func madeAgain(t *testing.T, api *kubetest.API, path string) {
	t.Helper()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			if meta, _ := api.Get(path)["metadata"].(map[string]any); meta["deletionTimestamp"] != nil {
				api.Set(t, path, fmt.Sprintf("metadata: {uid: again-%d, deletionTimestamp: null}", n))
			}
		}
	}()
	t.Cleanup(func() { close(done); <-stopped })
}

// TestAnApplicationThatIsMadeAgainAndAgain ends the removal, which names it.
func TestAnApplicationThatIsMadeAgainAndAgain(t *testing.T) {
	api, client := withSets(t)
	const app = argoAPI + "applications/again"
	api.Set(t, app, "metadata: {name: again, namespace: shop, uid: first, finalizers: [example.com/until-it-is-back]}") // nobody sees it gone
	r := found(t, client)
	madeAgain(t, api, app)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	err := r.applications(ctx)
	require.ErrorContains(t, err, "the Applications to be gone; last seen: ")
	require.ErrorContains(t, err, "shop/again")
	require.Len(t, deletions(api, argoAPI+"applications/"), 4)
}

// TestADefinitionOfUnknownAge may be somebody else's: nothing says when the deployment began.
func TestADefinitionOfUnknownAge(t *testing.T) {
	api, client := withSets(t, "a")
	api.Set(t, crds+"gizmos.example.com", strings.Replace(definition("gizmo"), byUs, byArgo+", creationTimestamp: '2026-01-03T00:00:00Z'", 1))
	api.Set(t, argoAPI+"applications/a-a", "status: {resources: [{group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: gizmos.example.com}]}")
	r := found(t, client)
	r.since = time.Time{}
	apps, err := r.mine(t.Context(), argo.Applications())
	require.NoError(t, err)
	require.NoError(t, r.markOwned(t.Context(), apps[0]))
	meta, _ := api.Get(crds + "gizmos.example.com")["metadata"].(map[string]any)
	require.Empty(t, meta["labels"])
}

// TestCRDsThatArgoCDHasBrought are the deployment's, unless they are older: no cascade
// takes them, and the release says what becomes of them.
func TestCRDsThatArgoCDHasBrought(t *testing.T) {
	for policy, stays := range map[string]bool{platform.RemoveKeep: true, platform.RemoveUnused: false} {
		t.Run(policy, func(t *testing.T) {
			api, client := withSets(t, "a")
			cascade(t, api, "a")
			api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}")
			for name, created := range map[string]string{"gizmo": "2026-01-03T00:00:00Z", "antique": "2026-01-01T00:00:00Z"} {
				api.Set(t, crds+name+"s.example.com", strings.Replace(definition(name), byUs, byArgo+", creationTimestamp: '"+created+"'", 1))
			}
			api.Set(t, argoAPI+"applications/a-a", "status: {resources: [{group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: gizmos.example.com}, "+
				"{group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: antiques.example.com}]}")
			record(t, client, func(rec *Removal) { rec.Remove.CRDs = policy })
			for _, asked := range []bool{false, true} {
				left, err := remover(client).Inventory(t.Context(), asked)
				require.NoError(t, err)
				for _, name := range []string{"gizmos", "gadgets"} {
					require.Equal(t, asked || !stays, slices.Contains(left.Names, "CustomResourceDefinition "+name+".example.com"), "a plan says what goes: %s", name)
				}
				require.NotContains(t, left.Names, "CustomResourceDefinition antiques.example.com")
			}
			out, err := removed(t.Context(), client, contract.RemoveInput{})
			require.NoError(t, err)
			require.Equal(t, stays, api.Get(crds+"gizmos.example.com") != nil)
			require.Equal(t, stays, slices.Contains(out.Kept, "CustomResourceDefinition gizmos.example.com"))
			meta, _ := api.Get(crds + "antiques.example.com")["metadata"].(map[string]any)
			require.Empty(t, meta["labels"], "it was there before")
			empty(t, client)
		})
	}
}

// TestCRDsGoOnRequest though the release keeps them: with all objects, those that
// somebody holds and those in namespaces of others among them. An earlier removal may have
// kept them.
func TestCRDsGoOnRequest(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprintf("after an earlier removal %v", earlier), func(t *testing.T) {
			api, client := shared(t)
			api.Set(t, crds+"widgets.example.com", definition("widget"))
			api.Set(t, crds+"widgets.example.com", "spec: {conversion: {strategy: Webhook, webhook: {}}}")
			const held = "/apis/example.com/v1/namespaces/team/widgets/held"
			api.Set(t, held, "metadata: {name: held, namespace: team, finalizers: [example.com/nobody]}")
			stripped := []string{"Widget team/held: example.com/nobody"}
			if earlier { // of which nothing says any more how long to wait
				api.Set(t, held, "metadata: {finalizers: null}")
				stripped = nil
			}
			record(t, client, func(rec *Removal) {
				rec.Remove.CRDs, rec.Remove.Finalizers.After = platform.RemoveKeep, 1e9
			})
			if earlier {
				out, err := removed(t.Context(), client, contract.RemoveInput{})
				require.NoError(t, err)
				require.Contains(t, out.Kept, "CustomResourceDefinition widgets.example.com")
				require.NotNil(t, api.Get(held))
				left, err := remover(client).Inventory(t.Context(), false)
				require.NoError(t, err)
				require.Empty(t, left.Names)
			}
			left, err := remover(client).Inventory(t.Context(), true)
			require.NoError(t, err)
			require.Contains(t, left.Names, "CustomResourceDefinition widgets.example.com")
			require.Subset(t, left.Names, []string{"Widget team/held", "Widget team/theirs"})

			out, err := removed(t.Context(), client, contract.RemoveInput{CRDs: true})
			require.NoError(t, err)
			require.Subset(t, out.Objects, []string{"Widget team/held", "Widget team/theirs"})
			require.Contains(t, out.Cluster, "CustomResourceDefinition/widgets.example.com")
			require.Equal(t, stripped, out.Stripped)
			require.Nil(t, api.Get(crds+"widgets.example.com"))
			require.Nil(t, api.Get(held))
			at := func(path string) int { return slices.Index(api.Writes(), "DELETE "+path) }
			require.Less(t, at(held), at(crds+"widgets.example.com"), "objects first")
			left, err = remover(client).Inventory(t.Context(), true)
			require.NoError(t, err)
			require.Empty(t, left.Names)
		})
	}
}
