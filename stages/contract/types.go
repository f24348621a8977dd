// Package contract is what the conductor and the steps agree on: the declarations of
// the steps, their inputs and outputs, and the protocol of a step's container. Inputs
// and outputs cross as JSON, so every field has a tag and a zero value that means "not
// there". No secret travels in them: secrets are Kubernetes Secrets or files of the
// state store, named here by reference.
package contract

import "github.com/slipway-sh/slipway/pipeline/report"

// Infrastructure is what every provider's Terraform root outputs.
type Infrastructure struct {
	Backing
	APIEndpoint  string `json:"apiEndpoint"` // https://host:port as the steps reach it
	StorageClass string `json:"storageClass"`
	// TerraformSerial is the serial of the Terraform state after the apply.
	TerraformSerial int64 `json:"terraformSerial"`
}

// Backing is what apps may want to know of the infrastructure; nothing that changes
// when a cluster is started again.
type Backing struct {
	ClusterName  string       `json:"clusterName"`
	LoadBalancer LoadBalancer `json:"loadBalancer"`
	ObjectStore  ObjectStore  `json:"objectStore"`
	Database     Database     `json:"database"`
}

// LoadBalancer says how a Service of type LoadBalancer is reached.
type LoadBalancer struct {
	Kind string `json:"kind"` // "node" (the node's own address), "nodeport", "cloud"
}

// ObjectStore is where the platform stores objects.
type ObjectStore struct {
	Kind string `json:"kind"` // "none" or "s3", "azblob", …
	URL  string `json:"url,omitempty"`
}

// Database is the database that the platform uses.
type Database struct {
	Kind string `json:"kind"` // "in-cluster" or "managed"
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"` // TCP port
}

// Cluster is what the cluster step saw once the API responded.
type Cluster struct {
	Version string   `json:"version"` // of the API server, "v1.37.2"
	Nodes   []string `json:"nodes"`   // names of the Ready nodes
}

// GitServer is how a step reaches the git server.
type GitServer struct {
	// URL is how people reach it, by its last host in the domain; if none is, as Argo CD does.
	URL string `json:"url"`
	// Address is host:port of its load balancer as a step reaches it.
	Address string `json:"address"`
}

// Git is the git server with the GitOps tree, as preorchestrator/git saw it.
type Git struct {
	GitServer
	ClusterURL string `json:"clusterURL"` // as Argo CD sees it
	Repository string `json:"repository"` // of the GitOps tree: "slipway/platform"
	Writer     string `json:"writer"`     // Secret of the account that pushes: "namespace/name"
}

// CloneURL is the address of a repository as Argo CD reaches it.
func (g Git) CloneURL(repository string) string { return g.ClusterURL + "/" + repository + ".git" }

// Publication is the GitOps tree as it was pushed.
type Publication struct {
	Revision string `json:"revision"` // commit SHA of the branch main
	Changed  bool   `json:"changed"`  // false: the branch held this tree already
}

// Branch is the branch of the tree on a git server of the platform's own.
const Branch = "main"

// Tree says how Argo CD reads the tree of the apps.
type Tree struct {
	Namespace  string `json:"namespace"`      // of Argo CD
	Repository string `json:"repository"`     // URL as Argo CD reaches it
	Target     string `json:"target"`         // branch, tag or commit that is followed
	Path       string `json:"path,omitempty"` // folder of the repository; empty: its top
	// Revision is the commit that Slipway pushed; empty in a repository of the user's:
	// it is the one that Argo CD finds.
	Revision string `json:"revision,omitempty"`
}

// ProjectsInput is what orchestrator/projects works on.
type ProjectsInput struct {
	Tree
	Fill map[string]any `json:"fill,omitempty"` // what the texts of the release's gitops.cluster name
}

// Projects is what orchestrator/projects made sure of.
type Projects struct {
	Names []string `json:"names"` // "AppProject namespace/name"
}

// AppsInput is what orchestrator/sync waits for.
type AppsInput struct {
	Tree
	Apps     []string `json:"apps"`     // the expected set of Applications, without the root
	Deadline int      `json:"deadline"` // seconds an app may take to become Synced and Healthy
	// Values are what the root's chart lacks in a repository of the user's; nil: they were pushed.
	Values *TreeValues `json:"values,omitempty"`
}

// App is one Argo CD Application as it was last seen.
type App = report.App

// Apps is the state of all Applications.
type Apps struct {
	Apps     []App  `json:"apps"`
	Revision string `json:"revision,omitempty"` // of the tree, where all were brought to it
}

// Access says how users reach the platform.
type Access struct {
	URLs     []Link   `json:"urls"`
	Commands []string `json:"commands"` // how to log in and look around
	// Guidance is what the platform release tells people at the end, plain text.
	Guidance string `json:"guidance,omitempty"`
}

// Link is one address of the platform.
type Link = report.Link
