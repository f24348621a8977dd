// Package onprem is the provider for Kubernetes on machines of the user's own. So far it only has
// its section of the configuration: Provider has no Terraform method, so Registry.Get refuses
// an install with CodeUnknown.
package onprem

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/providers"
)

// Name is the provider's name in the config.
const Name = "onprem"

// Provider is the provider. The zero value is ready to use.
type Provider struct{}

// Settings is this provider's section of the config.
type Settings struct {
	Kubeconfig   config.SecretRef `json:"kubeconfig" jsonschema:"required,example=file:~/.kube/config" jsonschema_description:"Reference to the administrator's kubeconfig for the cluster."`
	Context      string           `json:"context,omitempty" jsonschema:"example=platform" jsonschema_description:"Context in the kubeconfig; the current one when left out."`
	StorageClass string           `json:"storageClass,omitempty" jsonschema:"pattern=^[a-z0-9]([a-z0-9.-]{0\\,251}[a-z0-9])?$,example=fast" want:"the name of a storage class: lower-case letters, digits, dots and hyphens" jsonschema_description:"Storage class of the platform's volumes; the cluster's default when left out."`
	Addresses    []string         `json:"addresses,omitempty" example:"[\"192.0.2.10-192.0.2.20\"]" jsonschema_description:"IPv4 addresses, networks or ranges for Services of type LoadBalancer; the cluster assigns its own when left out."`
}

// Name returns Name.
func (Provider) Name() string { return Name }

// Settings returns the defaults.
func (Provider) Settings() any { return Settings{} }

// Validate checks the section: see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	var s Settings
	l := document.List(config.Decode(section, &s))
	providers.CheckAccess(&l, s.Kubeconfig, s.Context)
	for i, text := range s.Addresses {
		if !isAddressRange(text) {
			l.Add(fmt.Sprintf("addresses[%d]", i), document.Shown(text), "an IPv4 address, a network or a range such as 192.0.2.10-192.0.2.20")
		}
	}
	return l
}

func isAddressRange(text string) bool {
	if strings.Contains(text, "/") {
		return providers.IsNetwork(text, 0, 32)
	}
	first, last, ranged := strings.Cut(text, "-")
	a, err := netip.ParseAddr(first)
	if err != nil || !a.Is4() || !ranged {
		return err == nil && a.Is4()
	}
	b, err := netip.ParseAddr(last)
	return err == nil && b.Is4() && a.Compare(b) <= 0
}
