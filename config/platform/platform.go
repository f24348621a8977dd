// Package platform reads platform releases: directories with platform.yaml and the
// charts, manifests and GitOps tree that it refers to.
package platform

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// File is the name of the file that makes a directory a platform release.
const File = "platform.yaml"

// APIVersion is the version of platform.yaml; files of other versions are rejected.
const APIVersion = "slipway/v2"

// SchemaID identifies the JSON schema of platform.yaml.
const SchemaID = "https://slipway.sh/schema/platform-v2.json"

// Release is a platform release as described by platform.yaml. Every path is relative to
// the release's directory, slash-separated and inside of it.
//
// Texts for which a field's description lists names may contain them in braces: see Fill.
type Release struct {
	APIVersion     string        `json:"apiVersion"`                                              // version of this file's schema
	Name           string        `json:"name" is:"name"`                                          // name of the platform: lower-case letters, digits and hyphens
	Version        string        `json:"version" is:"version"`                                    // semantic version without a leading v: "1.0.0"
	Description    string        `json:"description,omitempty"`                                   // what it is, in one line
	UpgradableFrom []string      `json:"upgradableFrom,omitempty" is:"version"`                   // versions that can be upgraded to this one
	Requires       []Requirement `json:"requires,omitempty"`                                      // objects that others put into the cluster; a run waits for them
	Namespaces     []Namespace   `json:"namespaces,omitempty" unique:"name"`                      // namespaces, created before anything else
	Secrets        []Secret      `json:"secrets,omitempty"`                                       // Secrets with values that are generated once or given by the user
	ConfigMaps     []ConfigMap   `json:"configMaps,omitempty"`                                    // ConfigMaps made from the configuration
	Certificates   []Certificate `json:"certificates,omitempty" unique:"secret"`                  // certificates that are generated, or copied if the user brings one
	Components     []Component   `json:"components" unique:"name" least:"at least one component"` // what is installed
	GitOps         *GitOps       `json:"gitops,omitempty"`                                        // how apps are installed; required if there are apps
	Links          []Link        `json:"links,omitempty" unique:"name"`                           // addresses of the platform for people
	Checks         []Check       `json:"checks,omitempty" unique:"name"`                          // requests that must succeed at the end of a run
	Settings       string        `json:"settings,omitempty"`                                      // file with the JSON schema of platform.settings in the configuration; no settings when left out
	Guidance       string        `json:"guidance,omitempty"`                                      // file with a text template, shown at the end of an install
	Approval       string        `json:"approval,omitempty"`                                      // file with a text template that an install shows before it asks for consent; without a terminal, --yes or --approve is required
	Remove         *Remove       `json:"remove,omitempty"`                                        // how the platform is removed from an existing cluster
	Phases         []Phase       `json:"phases,omitempty" unique:"name"`                          // parts of a run by the names that users know, in order, for the run's report
	Data           []Data        `json:"data,omitempty" unique:"name"`                            // data that an upgrade must not lose
	Migrations     []Migration   `json:"migrations,omitempty" unique:"name"`                      // changes that an upgrade makes to data, in this order
	Tests          []Test        `json:"tests,omitempty" unique:"name"`                           // tests of the platform, run by slipway test
	Workloads      []Workload    `json:"workloads,omitempty" unique:"name"`                       // examples of users' workloads that slipway test deploys, checks and removes

	files        fs.FS
	dir          string             // on this machine, in which users find files; empty: nowhere
	schema       *document.Schema   // of Settings; nil if there is none
	settingsText []byte             // the content of that file
	guidance     *bounded.Template  // nil if there is none
	approval     *bounded.Template  // nil if there is none
	document     *document.Document // platform.yaml; nil for a release that was not read from one
}

// Line is the line of a field of platform.yaml, "components[2].path", or of the nearest one
// around it; 0 if it is not known.
func (r *Release) Line(field string) int {
	if r.document == nil {
		return 0
	}
	return r.document.Line(field)
}

// Files are the files of the release.
func (r *Release) Files() fs.FS { return r.files }

// Path is a file of the release as users open it: below its directory, where that is known.
// What is no file of the release stays as it is.
func (r *Release) Path(name string) string {
	if r.dir == "" {
		return name
	}
	if _, err := fs.Stat(r.files, name); err != nil {
		return name
	}
	return filepath.Join(r.dir, filepath.FromSlash(name))
}

// In completes what Load has returned for a directory of this machine: messages say where it
// is.
func In(dir string, r *Release, err error) (*Release, error) {
	if err == nil {
		r.dir = dir
		return r, nil
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || !slices.Contains([]fault.Code{CodeMissing, CodeInvalid}, f.Code) {
		return nil, err
	}
	named := *f
	named.Op += " in " + dir
	return nil, &named
}

// Kind determines how a component is installed.
type Kind string

// The kinds of components.
const (
	Chart     Kind = "chart"     // a Helm chart, installed as a Helm release
	Manifests Kind = "manifests" // files with objects, or a kustomization, applied as they are
	Job       Kind = "job"       // files with Jobs, each created once and awaited
	Gate      Kind = "gate"      // installs nothing; others wait for its gates
	AppSet    Kind = "appset"    // files with ApplicationSets; their Applications are awaited
	App       Kind = "app"       // an Argo CD Application, synced from the GitOps tree
	Adopted   Kind = "adopted"   // a Helm chart in the GitOps tree that Slipway installs and Argo CD takes over
)

// Kinds are all kinds.
func Kinds() []string {
	return []string{string(Chart), string(Manifests), string(Job), string(Gate), string(AppSet), string(App), string(Adopted)}
}

// MaxWave is the highest sync wave that a component may have.
const MaxWave = 99

// Component is a part of the platform. Each one that is not an app is a step of a run:
// it is installed, and then its gates are awaited.
type Component struct {
	Name      string   `json:"name" is:"name"`                     // name of the component and of its Helm release or Application: lower-case letters, digits and hyphens
	Kind      Kind     `json:"kind"`                               // how it is installed
	Path      string   `json:"path,omitempty"`                     // directory of the chart, app or kustomization, or directory or file with objects
	Bundle    string   `json:"bundle,omitempty"`                   // for kind manifests: directory of the bundle's manifests, to which path adds or applies patches
	Namespace string   `json:"namespace,omitempty" is:"namespace"` // its namespace: one of namespaces, default or kube-system
	After     []string `json:"after,omitempty"`                    // components that must be ready before this one is installed
	Ready     []Await  `json:"ready,omitempty"`                    // gates that must open before it is ready, in addition to its pods' rollout
	Wave      int      `json:"wave,omitempty" is:"wave"`           // for kind app, 0 to 99: a wave starts when the previous one is Healthy
	Enabled   bool     `json:"enabled"`                            // whether it is installed by default
	Required  bool     `json:"required,omitempty"`                 // whether the user cannot switch it off
	Optional  bool     `json:"optional,omitempty"`                 // whether a run only warns if it cannot be installed
	Empty     bool     `json:"empty,omitempty"`                    // for kind appset: whether it may create no Application
	Needs     []string `json:"needs,omitempty" is:"component"`     // components that this one requires
	Images    []string `json:"images,omitempty" is:"image"`        // its images: short names of the bundle's images, such as "postgresql", or references as in a manifest

	// Values of a chart that replace its own. Texts may have names in braces; a text that
	// is only a name becomes the value itself, with its type.
	Values json.RawMessage `json:"values,omitempty"`
	// Files with values of a chart; values and later files take precedence; {scale} in
	// their paths.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// Hosts that the component's pods resolve to a Service of the platform,
	// "namespace/name", regardless of DNS; {domain} in them.
	Hosts map[string]string `json:"hosts,omitempty" key:"host" is:"reference"`
	// The node that the component's pods select by a label.
	Node *Node `json:"node,omitempty"`
}

// ImageNames are those of Images that are short names.
func (c Component) ImageNames() []string {
	return slices.DeleteFunc(slices.Clone(c.Images), func(s string) bool { return !imageref.IsShort(s) })
}

// ImageReferences are those of Images that are upstream references, as
// imageref.Normal writes them.
func (c Component) ImageReferences() []string {
	var out []string
	for _, s := range c.Images {
		if imageref.IsShort(s) {
			continue
		}
		if normal, err := imageref.Normal(s); err == nil { // a release with another one is refused
			out = append(out, normal)
		}
	}
	return out
}

// Node is a node with a label. Where no node has it, one is chosen and given it; more
// than one is an error.
type Node struct {
	Label string `json:"label" is:"nodeLabel"` // label of the node, such as "storage=fast"
}

// HasChart reports whether Slipway renders a chart with the component's values.
func (c Component) HasChart() bool { return c.Kind == Chart || c.Kind == Adopted }

// Installed reports whether Slipway installs the component itself, be it only first.
func (c Component) Installed() bool { return c.Kind != App }

// Link is an address that people use.
type Link struct {
	Name        string `json:"name" least:"a name"`                // name of the link, such as "Gitea"
	URLTemplate string `json:"urlTemplate"`                        // URL, with {domain} and {deployment}: "https://gitea.{domain}"
	Service     string `json:"service,omitempty" is:"service"`     // its Service of type LoadBalancer, "namespace/name:port", checked at the end of a run
	Component   string `json:"component,omitempty" is:"component"` // omit the link without this component
}

// Check is an HTTP request that must succeed for a run to succeed.
type Check struct {
	Name      string `json:"name" least:"a name"`                // description of the check, in a few words
	Component string `json:"component,omitempty" is:"component"` // omit the check without this component
	Service   string `json:"service" is:"service"`               // Service of type LoadBalancer: "namespace/name:port"
	TLS       bool   `json:"tls,omitempty"`                      // whether to use HTTPS
	Path      string `json:"path,omitempty" is:"urlPath"`        // path of the request; default "/"
	Status    int    `json:"status,omitempty" is:"status"`       // expected status; default 200
	Contains  string `json:"contains,omitempty"`                 // text that the body must contain
}

// URL returns the link's URL.
func (l Link) URL(domain, deployment string) string {
	return Fill(l.URLTemplate, map[string]string{"domain": domain, "deployment": deployment})
}

// Hosts returns the hosts that the user's certificate must be for: those of the git server
// and of Certificates that are of the domain, and those of the links by HTTPS, except for
// components that are switched off.
func (r *Release) Hosts(domain, deployment string, off []string) []string {
	var hosts []string
	add := func(host string) {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	var named []string
	if s := r.GitServer(); s != nil && !slices.Contains(off, s.Component) {
		named = append(named, s.Hosts...)
	}
	for _, c := range r.Certificates {
		named = append(named, c.Hosts...)
	}
	for _, h := range named { // a self-signed one may be for more: *.{domain}
		if strings.HasSuffix(h, ".{"+FillDomain+"}") && !strings.HasPrefix(h, "*") {
			add(Fill(h, map[string]string{FillDomain: domain}))
		}
	}
	for _, l := range r.Links {
		rest, ok := strings.CutPrefix(l.URL(domain, deployment), "https://")
		if !ok || slices.Contains(off, l.Component) {
			continue
		}
		host, _, _ := strings.Cut(rest, "/")
		host, _, _ = strings.Cut(host, ":")
		add(host)
	}
	return hosts
}
