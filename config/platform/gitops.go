package platform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// GitOps says how apps are installed: Argo CD brings them about from a tree in a
// repository.
type GitOps struct {
	Engine  string     `json:"engine"`            // Argo CD's component; Applications are in its namespace
	Tree    string     `json:"tree,omitempty"`    // directory of the release to push; default "gitops"
	Server  *GitServer `json:"server,omitempty"`  // where it is pushed to
	Project Project    `json:"project,omitempty"` // what the apps may bring about
	Cluster *Cluster   `json:"cluster,omitempty"` // what the generators of ApplicationSets read of the cluster
}

// Cluster is the Secret of the cluster that Argo CD runs in. Its labels and annotations
// may have the names of Fill, and those of the tree's place: {git.url}, {git.revision}
// and {git.path}.
type Cluster struct {
	Name        string            `json:"name,omitempty" is:"name"`                      // Argo CD's name for the cluster; default "in-cluster"
	Labels      map[string]string `json:"labels,omitempty" key:"label" is:"filled"`      // labels for generators; names in braces in their values
	Annotations map[string]string `json:"annotations,omitempty" key:"label" is:"filled"` // annotations for generators; names in braces in their values
}

// Holes returns the names that the cluster's texts contain, sorted.
func (c *Cluster) Holes() []string {
	return holes(slices.Concat(slices.Collect(maps.Values(c.Labels)), slices.Collect(maps.Values(c.Annotations)))...)
}

// GitServer is a git server that is a component of the platform.
type GitServer struct {
	Component  string   `json:"component"`                                 // the server's component
	Service    string   `json:"service" is:"ourService"`                   // its Service with HTTPS: "namespace/name:port"
	Hosts      []string `json:"hosts" is:"host" least:"at least one host"` // hosts of its certificate, with {domain}; Argo CD uses the first host that the certificate covers
	Repository string   `json:"repository" is:"repository"`                // repository of the tree, such as "slipway/platform"
	Accounts   Accounts `json:"accounts"`                                  // accounts on the server
}

// Accounts are Secrets, "namespace/name", with the keys username and password.
type Accounts struct {
	Administrator string `json:"administrator" is:"reference"` // Secret of the administrator's account
	Writer        string `json:"writer" is:"reference"`        // Secret of the account with which Slipway pushes
	Reader        string `json:"reader" is:"reference"`        // Secret of Argo CD's account, which can only read
}

// Project says what the platform's apps may bring about: the objects of an AppProject
// that Slipway makes. Their namespaces are those of the apps, and Namespaces.
type Project struct {
	Name         string   `json:"name,omitempty" is:"name"`               // name of the AppProject; default "platform"
	Namespaces   []string `json:"namespaces,omitempty" is:"appNamespace"` // namespaces in addition to those of the apps, for Applications of ApplicationSets
	ClusterKinds []string `json:"clusterKinds,omitempty" is:"groupKind"`  // cluster-scoped kinds: "scheduling.k8s.io/PriorityClass"
	Kinds        []string `json:"kinds,omitempty" is:"groupKind"`         // namespaced kinds: "apps/Deployment", "ConfigMap"; all when left out
}

// Destinations are the namespaces in which the project lets its Applications bring objects
// about: never Argo CD's own, where whoever may write may do anything.
func (r *Release) Destinations() []string {
	var out []string
	add := func(namespace string) {
		if namespace != r.Engine().Namespace && !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	for _, c := range r.Components {
		if c.Kind == App {
			add(c.Namespace)
		}
	}
	for _, namespace := range r.GitOps.Project.Namespaces {
		add(namespace)
	}
	return out
}

// GitServer returns the git server of the platform's own; nil if it has none.
func (r *Release) GitServer() *GitServer {
	if r.GitOps == nil {
		return nil
	}
	return r.GitOps.Server
}

// ForRepository returns the release for a deployment whose apps come from a repository of
// the user's: without a git server of the platform's own, unless the user switches its
// component on.
func (r *Release) ForRepository() *Release {
	if r.GitServer() == nil {
		return r
	}
	out, server := *r, *r.GitOps.Server
	gitops := *r.GitOps
	gitops.Server = nil
	out.GitOps, out.Components = &gitops, slices.Clone(r.Components)
	for i := range out.Components {
		c := &out.Components[i]
		if c.Name == server.Component {
			c.Required, c.Enabled = false, false
		}
		c.Hosts = maps.Clone(c.Hosts)
		maps.DeleteFunc(c.Hosts, func(_, service string) bool { return strings.HasPrefix(server.Service, service+":") })
	}
	return &out
}

// NoGitServer is the fault of a release with apps and without a git server, for a
// deployment without a repository of the user's.
func (r *Release) NoGitServer() error {
	return unfit(fmt.Sprintf("find where the apps of %s %s come from", r.Name, r.Version), errors.New("the platform has no git server of its own"),
		"set git.url in the configuration to the repository with its tree")
}

// Engine returns the component that is Argo CD; nil if there is none.
func (r *Release) Engine() *Component {
	if r.GitOps == nil {
		return nil
	}
	return r.component(r.GitOps.Engine)
}

// component returns the component of that name; nil if there is none.
func (r *Release) component(name string) *Component {
	if i := slices.IndexFunc(r.Components, func(c Component) bool { return c.Name == name }); i >= 0 {
		return &r.Components[i]
	}
	return nil
}

// Component returns the component of that name.
func (r *Release) Component(name string) (Component, bool) {
	if c := r.component(name); c != nil {
		return *c, true
	}
	return Component{}, false
}

// Foundation returns the components that the apps rest on: the git server, Argo CD, and
// whatever those come after. Without apps there are none.
func (r *Release) Foundation() []string {
	if r.GitOps == nil {
		return nil
	}
	var out []string
	var add func(name string)
	add = func(name string) {
		c := r.component(name)
		if c == nil || slices.Contains(out, name) {
			return
		}
		out = append(out, name)
		for _, before := range c.After {
			add(before)
		}
	}
	add(r.GitOps.Engine)
	if s := r.GitOps.Server; s != nil {
		add(s.Component)
	}
	return out
}

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
