package orchestrator

import (
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

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
