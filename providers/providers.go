// Package providers defines what a provider is: a place to install a platform to. A
// provider owns its section of the user's config and its Terraform root, and says what its
// clusters are. Providers contribute data; the code that uses it is in the steps.
package providers

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

// Section is the part of a provider that concerns the config: its name and its section.
// Implementations are immutable and safe for concurrent use.
type Section interface {
	// Name returns the provider's name in the config: "local".
	Name() string
	// Settings returns the struct that the section is decoded into, with its defaults
	// set and the JSON schema in its tags.
	Settings() any
	// Validate checks the provider's own section of the config, {} if there is
	// none. The fields of the problems are relative to the section.
	Validate(section json.RawMessage) []config.Problem
}

// Describer is a Section with a description for users who choose a provider.
type Describer interface {
	// Describe fills in the fields of s besides the name and the settings.
	Describe(s *config.Section)
}

// Provider is a place to install to.
type Provider interface {
	Section
	// Terraform returns the root and its variables for a deployment, whose section is valid.
	Terraform(d Deployment) (Root, error)
	// Cluster says what the cluster of a deployment is, whose section is valid.
	Cluster(d Deployment) (Cluster, error)
}

// Cluster describes a cluster before Terraform has run. The zero value is a cluster that
// Terraform creates.
type Cluster struct {
	Requirements Requirements     `json:"requirements"`
	Local        *LocalCluster    `json:"local,omitempty"`    // Slipway runs it as a service; nil: it does not
	Addons       *Addons          `json:"addons,omitempty"`   // what it lacks when it is fresh; nil: nothing
	External     *ExternalCluster `json:"external,omitempty"` // it existed before; nil: it did not
}

// OwnsNodes reports whether Slipway runs the nodes of the cluster.
func (c Cluster) OwnsNodes() bool { return c.Local != nil }

// Existed reports whether the cluster existed before the deployment, and outlives it.
func (c Cluster) Existed() bool { return c.External != nil }

// Locator is a Section that says where it installs, for people who are asked whether it may.
type Locator interface {
	// Location says that of a deployment whose section is valid.
	Location(d Deployment) Location
}

// Location is where a platform is installed.
type Location struct {
	Cluster string // which cluster
	Region  string // of the provider; empty if it has none
}

// LocationOf is where a provider installs a deployment.
func LocationOf(s Section, d Deployment) Location {
	if p, ok := s.(Locator); ok {
		return p.Location(d)
	}
	return Location{Cluster: "the cluster " + d.Name}
}

// Deployment is what a provider needs to know about a deployment.
type Deployment struct {
	Name    string          // the deployment's name
	Scale   int             // scale profile: 50, 100, …; see config.Profile
	Section json.RawMessage // the provider's section of the config; nil means {}
}

// Root is a Terraform root module. Its outputs are Outputs, each an object.
type Root struct {
	Files fs.FS          // *.tf and .terraform.lock.hcl, at the top
	Vars  map[string]any // variables; no secrets
}

// Outputs returns the outputs of every provider's root.
func Outputs() []string {
	return []string{"cluster_name", "api_endpoint", "storage_class", "load_balancer", "object_store", "database"}
}

// Requirements are the resources that the machine must have. infrastructure/preflight
// checks them in the toolchain container. The zero value requires nothing.
type Requirements struct {
	MemoryBytes int64 `json:"memoryBytes,omitempty"` // in total
	DiskBytes   int64 `json:"diskBytes,omitempty"`   // free on the state volume
	CPUs        int   `json:"cpus,omitempty"`
	// Raises are sysctls of the machine that the cluster raises where they are lower.
	Raises map[string]int64 `json:"raises,omitempty"`
}

// LocalCluster describes the cluster that Slipway itself runs for a deployment as a
// service, from the bundle's image "node".
type LocalCluster struct {
	// Bind is the address of this machine on which it is published, IPv4 or IPv6; 0.0.0.0 or
	// :: for all of them. Empty: 127.0.0.1.
	Bind    string `json:"bind,omitempty"`
	APIPort int    `json:"apiPort"` // TCP port of this machine on which its API is published
	Ports   []int  `json:"ports"`   // further TCP ports that it publishes
	// Mirror is the URL at which the node reaches the registry of the images, if that
	// is not the registry's own address.
	Mirror string `json:"mirror,omitempty"`
}

// Host is the address at which this machine reaches what is published.
func (n LocalCluster) Host() string {
	if a, err := netip.ParseAddr(n.Bind); err == nil && !a.IsUnspecified() {
		return a.String()
	}
	return "127.0.0.1"
}

// ExternalCluster is how an existing cluster is reached and what a deployment uses of it. No
// part of it is secret.
type ExternalCluster struct {
	Kubeconfig   config.SecretRef `json:"kubeconfig"`
	Context      string           `json:"context,omitempty"`      // in the kubeconfig; empty: the current one
	StorageClass string           `json:"storageClass,omitempty"` // of the platform's volumes; empty: the default one
	// Registry is the registry of the images, host[:port][/path], as the cluster's nodes
	// reach it; empty: under the same address as the engine.
	Registry string `json:"registry,omitempty"`
}

// Addons are what a fresh cluster lacks, such as cluster DNS and storage. They are
// applied once its API responds.
type Addons struct {
	// Manifests are templates (text/template) of YAML, by file name. In them, .NAME
	// is one of Values, and image "NAME" is an image's reference by digest.
	Manifests map[string]string `json:"manifests"`
	Values    map[string]string `json:"values"`
}

// CheckAccess checks the fields of a section that say how to reach an existing cluster.
func CheckAccess(l *document.List, kubeconfig config.SecretRef, context string) {
	switch {
	case kubeconfig == "":
		l.Add("kubeconfig", "nothing", "where the access to the cluster is: "+config.RefForms)
	case !kubeconfig.Valid():
		l.Add("kubeconfig", "something else", "where the access to the cluster is: "+config.RefForms+"; the access itself does not belong in this file")
	}
	if strings.ContainsFunc(context, func(r rune) bool { return r < ' ' }) {
		l.Add("context", document.Quote(context), "the name of a context")
	}
}

// IsNetwork reports whether text is an IPv4 network without host bits whose prefix has
// from least to most bits.
func IsNetwork(text string, least, most int) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Addr().Is4() && p.Masked() == p && p.Bits() >= least && p.Bits() <= most
}
