// Package platform reads platform releases: directories with platform.yaml and the
// charts, manifests and GitOps tree that it refers to.
package platform

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// File is the name of the file that makes a directory a platform release.
const File = "platform.yaml"

// APIVersion is the version of platform.yaml that this program reads.
const APIVersion = "slipway/v1"

// Release is a platform release as described by platform.yaml. Every path is relative to
// the release's directory, slash-separated and inside of it.
type Release struct {
	APIVersion     string      `json:"apiVersion"`               // "slipway/v1"
	Name           string      `json:"name"`                     // of the platform, [a-z0-9-]
	Version        string      `json:"version"`                  // semantic version without a leading v: "1.0.0"
	Description    string      `json:"description,omitempty"`    // one line for people
	UpgradableFrom []string    `json:"upgradableFrom,omitempty"` // versions that can be upgraded to this one
	GitOps         string      `json:"gitops,omitempty"`         // folder that is pushed to the git server; default "gitops"
	Namespaces     []Namespace `json:"namespaces,omitempty"`     // made before anything is installed in them
	Secrets        []Secret    `json:"secrets,omitempty"`        // generated once, kept for ever
	Components     []Component `json:"components"`               // what is installed
	Links          []Link      `json:"links,omitempty"`          // how people reach what was installed
	Checks         []Check     `json:"checks,omitempty"`         // what must answer at the end of a run
	Settings       string      `json:"settings,omitempty"`       // JSON schema of the release's own section of the configuration, platform.settings

	schema       *jsonschema.Schema // of Settings; nil if there is none
	settingsText []byte             // the content of that file
}

// Kind determines who installs a component.
type Kind string

// The kinds of components.
const (
	Bootstrap Kind = "bootstrap" // Slipway installs it before the orchestrator: the git server, Argo CD
	App       Kind = "app"       // an Application of Argo CD, synced from the GitOps tree
)

// MaxWave is the highest sync wave that a component may have.
const MaxWave = 99

// Component is a part of the platform.
type Component struct {
	Name      string   `json:"name"`               // of the Helm release or the Application, [a-z0-9-]
	Kind      Kind     `json:"kind"`               // "app" or "bootstrap"
	Path      string   `json:"path,omitempty"`     // folder: a chart when it holds Chart.yaml, else manifests
	Bundle    string   `json:"bundle,omitempty"`   // folder of the bundle's manifests/ applied before Path: "argocd"
	Namespace string   `json:"namespace"`          // where it is installed; one of Namespaces
	Wave      int      `json:"wave,omitempty"`     // 0..99; a wave starts when the one before it is Healthy
	Enabled   bool     `json:"enabled"`            // unless the user says otherwise; true when left out
	Required  bool     `json:"required,omitempty"` // the user cannot switch it off
	Needs     []string `json:"needs,omitempty"`    // components without which this one does not work
	Images    []string `json:"images,omitempty"`   // short names of the images that it runs: "postgresql"
}

// Namespace is a Kubernetes namespace of the platform.
type Namespace struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Secret is a Kubernetes Secret whose values are generated on the first run and never
// changed afterwards.
type Secret struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`      // one of Release.Namespaces
	Type      string            `json:"type,omitempty"` // default "Opaque"
	Labels    map[string]string `json:"labels,omitempty"`
	Keys      []SecretKey       `json:"keys"`
}

// Generate determines where the value of a secret's key comes from.
type Generate string

// The sources of values.
const (
	Password Generate = "password" // random letters and digits
	Token    Generate = "token"    // random lower-case hexadecimal digits
	Literal  Generate = "literal"  // Value as it stands: a user name, an address; never a secret
	CopyOf   Generate = "copyOf"   // the value of the key that From names
	Given    Generate = "given"    // a secret of the user's configuration, which From names; no key without one
)

// DefaultLength is the default length of a password or token.
const DefaultLength = 32

// SecretKey is one key of a Secret.
type SecretKey struct {
	Key      string   `json:"key"`
	Generate Generate `json:"generate"`
	Length   int      `json:"length,omitempty"` // characters, 16..128, of a password or token; default 32
	Value    string   `json:"value,omitempty"`  // of a literal; {domain}, {deployment} and {adminEmail} are filled in
	From     string   `json:"from,omitempty"`   // of a copy: "namespace/secret/key", declared in this file; of a given one: see GivenNames
}

// GivenNames returns the fields of the configuration whose secrets a platform can have
// copied into its own Secrets.
func GivenNames() []string { return []string{"smtp.password", "observability.password"} }

// Link is an address that people use.
type Link struct {
	Name        string `json:"name"`                // "Gitea"
	URLTemplate string `json:"urlTemplate"`         // "https://gitea.{domain}"; {domain} and {deployment} are filled in
	Service     string `json:"service,omitempty"`   // the Service behind it: "namespace/name:port"
	Component   string `json:"component,omitempty"` // the link is left out when this component is off
}

// Check is an HTTP request that must succeed for a run to succeed.
type Check struct {
	Name      string `json:"name"`
	Component string `json:"component,omitempty"` // the check is left out when this component is off
	Service   string `json:"service"`             // "namespace/name:port"
	TLS       bool   `json:"tls,omitempty"`       // ask over HTTPS
	Path      string `json:"path,omitempty"`      // default "/"
	Status    int    `json:"status,omitempty"`    // expected; default 200
	Contains  string `json:"contains,omitempty"`  // text that the body must hold
}

// URL returns the link's URL.
func (l Link) URL(domain, deployment string) string {
	return Fill(l.URLTemplate, map[string]string{"domain": domain, "deployment": deployment})
}

// Hosts returns the hosts under which users reach the platform by HTTPS: that of the git
// server and those of the links, except for components that are switched off.
func (r *Release) Hosts(domain, deployment string, off []string) []string {
	hosts := []string{gitServer + "." + domain}
	for _, l := range r.Links {
		rest, ok := strings.CutPrefix(l.URL(domain, deployment), "https://")
		if !ok || slices.Contains(off, l.Component) {
			continue
		}
		host, _, _ := strings.Cut(rest, "/")
		host, _, _ = strings.Cut(host, ":")
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Fill replaces every {name} in s that is in values.
func Fill(s string, values map[string]string) string {
	pairs := make([]string, 0, 2*len(values))
	for k, v := range values {
		pairs = append(pairs, "{"+k+"}", v)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}
