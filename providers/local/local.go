// Package local is the provider whose cluster is a single Kubernetes node that Slipway
// itself runs as a service beside its steps. It needs no account, no network and no
// Terraform plugin.
package local

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/providers"
)

// Name is the provider's name in the config.
const Name = "local"

// How the node is reached and what it offers. The manifests in addons/ and the node's
// program must agree with these.
const (
	Alias        = "cluster" // host name of the node among the steps
	APIPort      = 6443      // Kubernetes API, HTTPS
	healthPort   = 6444      // of the node itself: its health
	StorageClass = "local-path"
	// VolumesPath is where volumes are stored on the node: on its own disk, which
	// lives as long as the deployment.
	VolumesPath = "/var/lib/slipway-node/volumes"
	// DNSAddress is the cluster's name server, which the kubelet configures in pods.
	DNSAddress = "10.96.0.10"
	// DNSDomain is the cluster's own domain.
	DNSDomain = "cluster.local"
)

//go:embed terraform/*.tf
var terraformFiles embed.FS

//go:embed addons/*.yaml
var addonFiles embed.FS

// Provider is the provider. The zero value is ready to use.
type Provider struct{}

// Location says that there is no cluster but Slipway's own.
func (Provider) Location(d providers.Deployment) providers.Location {
	return providers.Location{Cluster: "a Kubernetes of its own, " + d.Name + ", on the machine of the Dagger engine"}
}

// Settings is this provider's section of the config.
type Settings struct {
	// Ports are published by the node besides the API's, so that Services of type
	// LoadBalancer on them can be reached from outside of the run.
	Ports []int `json:"ports,omitempty" example:"[80, 443]" jsonschema_description:"TCP ports, 1 to 65535, that the node publishes in addition to its API's; the node uses 6444 itself."`
	// APIPort is where the API is published; nil: 6443.
	APIPort *int `json:"apiPort,omitempty" jsonschema:"minimum=1,maximum=65535,example=7443" jsonschema_description:"TCP port of this machine for the API, with slipway cluster and --keep-cluster; 6443 when left out. Clusters that run at the same time need different ports."`
	// Bind is the address of this machine on which the ports are published; empty: 127.0.0.1.
	Bind string `json:"bind,omitempty" jsonschema:"example=0.0.0.0" jsonschema_description:"Address of this machine for the API and the ports: 0.0.0.0 for all addresses; 127.0.0.1, which no other machine reaches, when left out."`
	// RegistryMirror is the URL at which the node reaches the registry of the images;
	// empty: https:// and the registry's address.
	RegistryMirror string `json:"registryMirror,omitempty" jsonschema:"example=http://192.0.2.1:5000/slipway" jsonschema_description:"URL at which the node reaches the registry of the images, if that is not https:// and the address in advanced.registry."`
}

// Name returns Name.
func (Provider) Name() string { return Name }

// Validate checks the section; see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	_, problems := settings(section)
	return problems
}

func settings(section json.RawMessage) (Settings, []config.Problem) {
	var s Settings
	l := document.List(config.Decode(section, &s))
	const port = "a TCP port, 1 to 65535"
	api := s.apiPort()
	if api < 1 || api > 65535 {
		l.Add("apiPort", fmt.Sprint(api), port)
	}
	for i, p := range s.Ports {
		want := ""
		switch {
		case p < 1 || p > 65535:
			want = port
		case p == APIPort || p == api:
			want = "another port: this one is for the node's API"
		case p == healthPort:
			want = "another port: this one is the node's own, for its health"
		case slices.Contains(s.Ports[:i], p):
			want = "each port once"
		}
		if want != "" {
			l.Add(fmt.Sprintf("ports[%d]", i), fmt.Sprint(p), want)
		}
	}
	if a, err := netip.ParseAddr(s.Bind); s.Bind != "" && (err != nil || a.Zone() != "" || a.IsMulticast()) {
		l.Add("bind", document.Quote(s.Bind), "an address of this machine, such as 127.0.0.1 or 192.0.2.1; 0.0.0.0 for all")
	}
	if s.RegistryMirror != "" && !isMirror(s.RegistryMirror) {
		l.Add("registryMirror", document.Quote(s.RegistryMirror), "a URL with http or https, a host and at most a path, such as http://192.0.2.1:5000/slipway")
	}
	return s, l
}

func (s Settings) bind() string { return cmp.Or(s.Bind, "127.0.0.1") }

func (s Settings) apiPort() int {
	if s.APIPort == nil {
		return APIPort
	}
	return *s.APIPort
}

func isMirror(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Terraform returns the root in terraform/, which needs no plugin.
func (Provider) Terraform(d providers.Deployment) (providers.Root, error) {
	files, err := fs.Sub(terraformFiles, "terraform")
	if err != nil {
		return providers.Root{}, fmt.Errorf("open the Terraform root of provider local: %w", err)
	}
	return providers.Root{Files: files, Vars: map[string]any{
		"deployment":    d.Name,
		"api_endpoint":  fmt.Sprintf("https://%s:%d", Alias, APIPort),
		"storage_class": StorageClass,
	}}, nil
}

// Settings returns the defaults: no ports, no mirror.
func (Provider) Settings() any { return Settings{} }

// Describe describes the provider.
func (Provider) Describe(s *config.Section) {
	s.Summary, s.Private = "a Kubernetes that Slipway runs itself, on this machine", true
}

// Cluster is a node that Slipway runs, and what it lacks.
func (p Provider) Cluster(d providers.Deployment) (providers.Cluster, error) {
	cluster := p.Local(d)
	addons, err := p.Addons()
	return providers.Cluster{Requirements: p.Requirements(d), Local: &cluster, Addons: &addons}, err
}

// Requirements returns what the node requires of the machine.
func (Provider) Requirements(d providers.Deployment) providers.Requirements {
	p := config.ProfileOf(d.Scale)
	return providers.Requirements{
		MemoryBytes: int64(p.MemoryGiB) << 30, DiskBytes: int64(p.DiskGiB) << 30, CPUs: p.CPUs,
		Raises: map[string]int64{"fs.inotify.max_user_instances": 8192, "fs.inotify.max_user_watches": 524288},
	}
}

// Local describes the cluster that Slipway runs.
func (Provider) Local(d providers.Deployment) providers.LocalCluster {
	s, _ := settings(d.Section)
	return providers.LocalCluster{Bind: s.bind(), Ports: s.Ports, APIPort: s.apiPort(), Mirror: s.RegistryMirror}
}

// Addons returns the cluster DNS and the storage provisioner.
func (Provider) Addons() (providers.Addons, error) {
	out := providers.Addons{
		Manifests: map[string]string{},
		Values:    map[string]string{"Address": DNSAddress, "Domain": DNSDomain, "Class": StorageClass, "Path": VolumesPath},
	}
	entries, err := addonFiles.ReadDir("addons")
	for _, e := range entries {
		var text []byte
		if text, err = addonFiles.ReadFile("addons/" + e.Name()); err != nil {
			break
		}
		out.Manifests[e.Name()] = string(text)
	}
	if err != nil {
		return out, fmt.Errorf("read the add-ons of provider local: %w", err)
	}
	return out, nil
}
