package orchestrator

import (
	"io/fs"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// The chart of the tree that makes the Applications, and the file in it with its values.
const (
	RootChart  = rootChart
	RootValues = valuesFile
)

// Tree is the GitOps tree of a release as it would be pushed, by path. It is not known yet
// where to.
func Tree(r *platform.Release, deployment string, in contract.TreeValues) (map[string][]byte, error) {
	dir, err := fs.Sub(r.Files(), r.GitOps.Tree)
	if err != nil {
		return nil, badTree(err)
	}
	git := contract.Git{ClusterURL: "https://git.invalid", Repository: "slipway/platform"}
	return buildTree(dir, r, deployment, contract.PublishInput{Git: git, Values: in})
}
