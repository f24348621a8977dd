package orchestrator

import (
	"context"
	"io/fs"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const rootProject = "slipway-root"

// runProjects makes the projects that bound the tree, and the Secret of the cluster that
// ApplicationSets read.
func runProjects(ctx context.Context, env *step.Env, in contract.ProjectsInput) (contract.Projects, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Projects{}, err
	}
	objs, err := Objects(r, env.Deployment, in, nil, false)
	if err != nil {
		return contract.Projects{}, err
	}
	applied, err := c.Apply(ctx, objs, kube.ApplyOptions{})
	var out contract.Projects
	for _, a := range applied {
		out.Names = append(out.Names, a.Kind+" "+a.Namespace+"/"+a.Name)
	}
	if err == nil {
		env.Progress("%s", kube.Count(applied))
	}
	return out, err
}

// clusterSecret is the cluster that Argo CD runs in, as the cluster generator of
// ApplicationSets reads it.
func clusterSecret(deployment string, c *platform.Cluster, in contract.ProjectsInput) (*unstructured.Unstructured, error) {
	known := maps.Clone(in.Fill)
	if known == nil {
		known = map[string]any{}
	}
	known[platform.FillGitURL], known[platform.FillGitRevision], known[platform.FillGitPath] = in.Repository, in.Target, in.Path
	labels, err := platform.FillTexts(c.Labels, known)
	if err != nil {
		return nil, badTree(err)
	}
	annotations, err := platform.FillTexts(c.Annotations, known)
	if err != nil {
		return nil, badTree(err)
	}
	maps.Copy(labels, kube.Labels(deployment))
	labels["argocd.argoproj.io/secret-type"] = "cluster"
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata":   map[string]any{"name": "cluster-" + c.Name, "namespace": in.Namespace},
		"stringData": map[string]any{"name": c.Name, "server": argo.InCluster, "config": `{"tlsClientConfig":{"insecure":false}}`},
	}}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o, nil
}

// projects bound what a push to the tree can bring about. The root brings Applications in
// Argo CD's namespace and nothing else; they bring what the release allows, where the
// release lets them, from the tree only.
func projects(deployment string, r *platform.Release, in contract.Tree) []*unstructured.Unstructured {
	apps := map[string]any{
		"description":              "The apps of " + r.Name + ".",
		"sourceRepos":              []any{in.Repository},
		"destinations":             argo.Destinations(r.Destinations()),
		"clusterResourceWhitelist": groupKinds(r.GitOps.Project.ClusterKinds),
	}
	if kinds := r.GitOps.Project.Kinds; len(kinds) > 0 {
		apps["namespaceResourceWhitelist"] = groupKinds(kinds)
	}
	root := map[string]any{
		"description":                "The Application that brings the others.",
		"sourceRepos":                []any{in.Repository},
		"destinations":               argo.Destinations([]string{in.Namespace}),
		"clusterResourceWhitelist":   []any{},
		"namespaceResourceWhitelist": groupKinds([]string{"argoproj.io/Application"}),
	}
	return []*unstructured.Unstructured{
		argo.Project(in.Namespace, rootProject, kube.Labels(deployment), root),
		argo.Project(in.Namespace, r.GitOps.Project.Name, kube.Labels(deployment), apps),
	}
}

// groupKinds reads "group/Kind" and "Kind".
func groupKinds(names []string) []any {
	out := make([]any, len(names))
	for i, n := range names {
		group, kind, found := strings.Cut(n, "/")
		if !found {
			group, kind = "", n
		}
		out[i] = map[string]any{"group": group, "kind": kind}
	}
	return out
}

// Tree is the GitOps tree of a release as it would be pushed, by path. It is not known yet
// where to.
func Tree(r *platform.Release, deployment string, in contract.TreeValues) (map[string][]byte, error) {
	dir, err := fs.Sub(r.Files(), r.GitOps.Tree)
	if err != nil {
		return nil, badTree(err)
	}
	git := contract.Git{ClusterURL: "https://" + contract.NotKnown, Repository: "slipway/platform"}
	if s := r.GitServer(); s != nil {
		git.Repository = s.Repository
	}
	return buildTree(dir, r, deployment, contract.PublishInput{Git: git, Values: in})
}

// Objects are what Slipway itself makes for the apps: the projects that bound them, the
// Secret of the cluster, and, where there are apps, the root Application. elsewhere: its
// tree is in a repository of the user's.
func Objects(r *platform.Release, deployment string, in contract.ProjectsInput, apps *contract.TreeValues, elsewhere bool) ([]*unstructured.Unstructured, error) {
	objs := projects(deployment, r, in.Tree)
	if r.GitOps.Cluster != nil {
		cluster, err := clusterSecret(deployment, r.GitOps.Cluster, in)
		if err != nil {
			return nil, err
		}
		objs = append(objs, cluster)
	}
	if apps == nil {
		return objs, nil
	}
	app := contract.AppsInput{Tree: in.Tree}
	if elsewhere {
		app.Values = apps
	}
	root, err := rootApplication(deployment, r, app)
	return append(objs, root), err
}
