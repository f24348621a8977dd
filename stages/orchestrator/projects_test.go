package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const tree = "https://gitea.gitea.svc/slipway/platform.git"

// spec is that of an object, as YAML.
func spec(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	b, err := yaml.Marshal(o.Object["spec"])
	require.NoError(t, err)
	return string(b)
}

// projectsOf are the projects of a release, the root's first.
func projectsOf(t *testing.T, r *platform.Release) (root, apps *unstructured.Unstructured) {
	t.Helper()
	objs := projects("demo", r, contract.Tree{Namespace: r.Engine().Namespace, Repository: tree})
	require.Len(t, objs, 2)
	for _, o := range objs {
		require.Equal(t, "argoproj.io/v1alpha1 AppProject", o.GetAPIVersion()+" "+o.GetKind())
		require.Equal(t, r.Engine().Namespace, o.GetNamespace())
		require.Equal(t, kube.Labels("demo"), o.GetLabels())
	}
	return objs[0], objs[1]
}

func TestTheRootBringsApplicationsAndNothingElse(t *testing.T) {
	r := testRelease()
	root, _ := projectsOf(t, r)
	require.YAMLEq(t, `
description: The Application that brings the others.
sourceRepos: [`+tree+`]
destinations: [{server: https://kubernetes.default.svc, namespace: cd}]
clusterResourceWhitelist: []
namespaceResourceWhitelist: [{group: argoproj.io, kind: Application}]
`, spec(t, root))
	app, err := rootApplication("demo", r, contract.AppsInput{Tree: contract.Tree{Namespace: "cd", Repository: tree}})
	require.NoError(t, err)
	named, _, err := unstructured.NestedString(app.Object, "spec", "project")
	require.NoError(t, err)
	require.Equal(t, root.GetName(), named)
}

func TestAppsBringWhatTheReleaseAllowsWhereTheyAre(t *testing.T) {
	r := testRelease()
	_, apps := projectsOf(t, r)
	require.Equal(t, "apps", apps.GetName(), "as the Applications name it")
	require.YAMLEq(t, `
description: The apps of reference.
sourceRepos: [`+tree+`]
destinations:
  - {server: https://kubernetes.default.svc, namespace: database}
  - {server: https://kubernetes.default.svc, namespace: platform}
clusterResourceWhitelist: [{group: scheduling.k8s.io, kind: PriorityClass}, {group: "", kind: Namespace}]
`, spec(t, apps), "each namespace once, and none of the others")

	r.GitOps.Project.Namespaces = []string{"platform", "addons", r.Engine().Namespace}
	_, apps = projectsOf(t, r)
	var namespaces []string
	destinations, _, err := unstructured.NestedSlice(apps.Object, "spec", "destinations")
	require.NoError(t, err)
	for _, d := range destinations {
		namespaces = append(namespaces, d.(map[string]any)["namespace"].(string))
	}
	require.Equal(t, []string{"database", "platform", "addons"}, namespaces, "what ApplicationSets make has some more")

	r.GitOps.Project.Kinds = []string{"apps/Deployment", "ConfigMap"}
	_, apps = projectsOf(t, r)
	kinds, _, err := unstructured.NestedSlice(apps.Object, "spec", "namespaceResourceWhitelist")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"group": "apps", "kind": "Deployment"}, map[string]any{"group": "", "kind": "ConfigMap"}}, kinds)
}

// TestNoAppReachesArgoCDsNamespace: what may write there may make Applications and projects
// that bring anything.
func TestNoAppReachesArgoCDsNamespace(t *testing.T) {
	r := testRelease()
	r.Components = append(r.Components, platform.Component{Name: "sneaky", Kind: platform.App, Namespace: r.Engine().Namespace})
	_, apps := projectsOf(t, r)
	require.NotContains(t, spec(t, apps), "namespace: "+r.Engine().Namespace)
	require.Contains(t, spec(t, apps), "namespace: database")
}

func TestTheProjectsOfTheReferencePlatform(t *testing.T) {
	files, err := releases.Release("1.0.0")
	require.NoError(t, err)
	r, err := platform.Load(files)
	require.NoError(t, err)
	root, apps := projectsOf(t, r)
	require.Contains(t, spec(t, root), "namespace: argocd")
	require.Equal(t, "platform", apps.GetName())
	var got struct {
		Destinations []struct{ Namespace string }
		Cluster      []struct{ Group, Kind string } `json:"clusterResourceWhitelist"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(spec(t, apps)), &got))
	var namespaces []string
	for _, d := range got.Destinations {
		namespaces = append(namespaces, d.Namespace)
	}
	require.Equal(t, []string{"platform", "database", "guestbook"}, namespaces)
	require.Equal(t, []struct{ Group, Kind string }{{"scheduling.k8s.io", "PriorityClass"}}, got.Cluster)
}

// TestTheRootIsOurs: somebody may have an Application of that name.
func TestTheRootIsOurs(t *testing.T) {
	require.True(t, isRoot(argo.Application{Name: RootApp, Namespace: "cd", Labels: kube.Labels("demo")}))
	require.False(t, isRoot(argo.Application{Name: RootApp, Namespace: "team"}))
	require.False(t, isRoot(argo.Application{Name: "web", Namespace: "cd", Labels: kube.Labels("demo")}))
}
