package platform

import (
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// rights is the group of the kinds that give rights.
const rights = "rbac.authorization.k8s.io/"

// Doubts lists what is valid in a release and may not be meant so, in the order of its lines: a
// project of its apps without kinds, or with roles or their bindings outside of namespaces. By
// either, whoever may push to the GitOps tree gives rights, to themselves for one.
func (r *Release) Doubts() []Problem {
	if r.GitOps == nil || len(r.Destinations()) == 0 { // nothing comes by the project
		return nil
	}
	const project = "gitops.project"
	var out document.List
	p := r.GitOps.Project
	if len(p.Kinds) == 0 {
		out.Add(project+".kinds", "nothing, so that a push to the tree may bring objects of any kind into the namespaces of the apps, RoleBindings too", "the kinds that the apps have")
	}
	for i, kind := range p.ClusterKinds {
		if strings.HasPrefix(kind, rights) {
			out.Add(fmt.Sprintf("%s.clusterKinds[%d]", project, i), kind+", by which whoever may push to the tree changes who may do what in the whole cluster",
				"roles and their bindings in a component that Slipway installs, of kind manifests or chart")
		}
	}
	if r.document == nil {
		return out
	}
	return r.document.Merge(out...)
}
