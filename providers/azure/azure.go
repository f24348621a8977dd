// Package azure is the provider for an AKS cluster in an Azure subscription. So far it only
// has its section of the configuration: Provider has no Terraform method, so Registry.Get
// refuses an install with CodeUnknown.
package azure

import (
	"encoding/json"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/providers"
)

// Name is the provider's name in the config.
const Name = "azure"

// Provider is the provider. The zero value is ready to use.
type Provider struct{}

// Settings is this provider's section of the config.
type Settings struct {
	Subscription  string `json:"subscription" jsonschema:"required,pattern=^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$,example=01234567-89ab-cdef-0123-456789abcdef" want:"the id of a subscription such as 01234567-89ab-cdef-0123-456789abcdef, in lower case" jsonschema_description:"ID of the subscription for all resources."`
	Location      string `json:"location" jsonschema:"required,pattern=^[a-z]+[0-9]?$,example=germanywestcentral,example=westeurope,example=northeurope,example=eastus,example=westus2,example=southeastasia" want:"a location such as germanywestcentral" jsonschema_description:"Location for all resources, as az account list-locations names it."`
	ResourceGroup string `json:"resourceGroup,omitempty" jsonschema:"pattern=^[\\w().-]{0\\,89}[\\w()-]$,example=platform" want:"the name of a resource group: 1 to 90 letters, digits and _().-, not ending with a dot" jsonschema_description:"Existing resource group to use; a new one when left out."`
	CIDR          string `json:"cidr,omitempty" jsonschema:"example=10.20.0.0/16" jsonschema_description:"IPv4 network of the new virtual network, /8 to /20."`
}

// Name returns Name.
func (Provider) Name() string { return Name }

// Settings returns the defaults.
func (Provider) Settings() any { return defaults() }

func defaults() Settings { return Settings{CIDR: "10.250.0.0/16"} }

// Validate checks the section: see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	s := defaults()
	l := document.List(config.Decode(section, &s))
	if !providers.IsNetwork(s.CIDR, 8, 20) {
		l.Add("cidr", document.Quote(s.CIDR), "an IPv4 network, /8 to /20, such as 10.250.0.0/16")
	}
	return l
}
