// Package existing is the provider for an existing cluster that somebody else looks after. Slipway checks
// what it needs of the cluster before it changes anything.
package existing

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/providers"
)

// Name is the provider's name in the config.
const Name = "existing"

//go:embed terraform/*.tf
var terraformFiles embed.FS

// Provider is the provider. The zero value is ready to use.
type Provider struct{}

// Settings is this provider's section of the config.
type Settings struct {
	Kubeconfig   config.SecretRef `json:"kubeconfig" jsonschema:"required,example=file:~/.kube/config" jsonschema_description:"Reference to the cluster's kubeconfig."`
	Context      string           `json:"context,omitempty" jsonschema:"example=platform" jsonschema_description:"Context in the kubeconfig; the current one when left out."`
	StorageClass string           `json:"storageClass,omitempty" jsonschema:"pattern=^[a-z0-9]([a-z0-9.-]{0\\,251}[a-z0-9])?$,example=fast" want:"the name of a storage class: lower-case letters, digits, dots and hyphens" jsonschema_description:"Storage class of the platform's volumes; the cluster's default when left out."`
	Registry     string           `json:"registry,omitempty" jsonschema:"example=registry.internal:5000/slipway" jsonschema_description:"Registry of the images as the cluster's nodes reach it, if not the address in advanced.registry."`
}

// Name returns Name.
func (Provider) Name() string { return Name }

// Settings returns the defaults.
func (Provider) Settings() any { return Settings{} }

// Describe describes the provider.
func (Provider) Describe(s *config.Section) {
	s.Summary = "an existing Kubernetes cluster"
}

// Validate checks the section: see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	_, problems := settings(section)
	return problems
}

func settings(section json.RawMessage) (Settings, []config.Problem) {
	var s Settings
	l := document.List(config.Decode(section, &s))
	providers.CheckAccess(&l, s.Kubeconfig, s.Context)
	if s.Registry != "" && !imageref.IsRegistry(s.Registry) {
		l.Add("registry", document.Shown(s.Registry), "host[:port][/path] such as registry.internal:5000/slipway, without scheme and tag")
	}
	return s, l
}

// Cluster says how the cluster is reached.
func (Provider) Cluster(d providers.Deployment) (providers.Cluster, error) {
	s, _ := settings(d.Section)
	access := providers.ExternalCluster{Kubeconfig: s.Kubeconfig, Context: s.Context, StorageClass: s.StorageClass, Registry: s.Registry}
	return providers.Cluster{External: &access}, nil
}

// Location names the context and where the kubeconfig is.
func (Provider) Location(d providers.Deployment) providers.Location {
	s, _ := settings(d.Section)
	context := "the current context"
	if s.Context != "" {
		context = "context " + s.Context
	}
	return providers.Location{Cluster: context + " of " + string(s.Kubeconfig)}
}

// Terraform returns the root in terraform/, which touches nothing. What the cluster is like
// becomes variables of it during a run: see infrastructure/cluster-preflight.
func (Provider) Terraform(d providers.Deployment) (providers.Root, error) {
	files, err := fs.Sub(terraformFiles, "terraform")
	if err != nil {
		return providers.Root{}, fmt.Errorf("open the Terraform root of provider existing: %w", err)
	}
	return providers.Root{Files: files, Vars: map[string]any{"deployment": d.Name}}, nil
}
