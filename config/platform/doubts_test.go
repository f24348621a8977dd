package platform_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
)

// TestWhatAPushMayBringIsDoubted: an app's project bounds that, and one without bounds, or that
// lets it give rights, is told of.
func TestWhatAPushMayBringIsDoubted(t *testing.T) {
	const anyKind = "line 43: gitops.project.kinds: got nothing, so that a push to the tree may bring objects of any kind into the namespaces of the apps, RoleBindings too, want the kinds that the apps have"
	byRoles := func(line, field, kind string) string {
		return "line " + line + ": gitops.project.clusterKinds[" + field + `]: got rbac.authorization.k8s.io/` + kind + `, by which whoever may push to the tree changes who may do what in the whole cluster, ` +
			"want roles and their bindings in a component that Slipway installs, of kind manifests or chart"
	}
	for project, doubts := range map[string][]string{
		"": {strings.Replace(anyKind, "43", "35", 1)},
		"project: {kinds: [ConfigMap, rbac.authorization.k8s.io/RoleBinding]}":                                                             nil,
		"project: {clusterKinds: [scheduling.k8s.io/PriorityClass]}":                                                                       {anyKind},
		"project: {kinds: [ConfigMap], clusterKinds: [scheduling.k8s.io/PriorityClass]}":                                                   nil,
		"project: {kinds: [ConfigMap], clusterKinds: [example.com/A, rbac.authorization.k8s.io/ClusterRole, rbac.authorization.k8s.io/A]}": {byRoles("43", "1", "ClusterRole"), byRoles("43", "2", "A")},
		"project: {clusterKinds: [rbac.authorization.k8s.io/ClusterRoleBinding]}":                                                          {anyKind, byRoles("43", "0", "ClusterRoleBinding")},
	} {
		t.Run(project, func(t *testing.T) {
			r, err := platform.Load(tree(strings.Replace(good, "\nlinks:\n", "\n  "+project+"\nlinks:\n", 1)))
			require.NoError(t, err)
			var got []string
			for _, p := range r.Doubts() {
				got = append(got, p.String())
			}
			require.Equal(t, doubts, got)
		})
	}
}

// TestWhereNothingIsPushedNothingIsDoubted.
func TestWhereNothingIsPushedNothingIsDoubted(t *testing.T) {
	files := filesOf(t, "testdata/release")
	for what, parts := range map[string]string{
		"no apps":                                "",
		"sets whose Applications may be nowhere": "  - {name: addons, kind: appset, path: appsets, namespace: cd}\ngitops: {engine: cd}\n",
	} {
		text := "apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: cd}]\ncomponents:\n  - {name: cd, kind: manifests, path: manifests/cd, namespace: cd, required: true}\n" + parts
		files[platform.File] = &fstest.MapFile{Data: []byte(text)}
		r, err := platform.Load(files)
		require.NoError(t, err, what)
		require.Empty(t, r.Doubts(), what)
	}
}
