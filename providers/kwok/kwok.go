// Package kwok is a provider that can only be configured.
package kwok

import (
	"encoding/json"

	"github.com/slipway-sh/slipway/config"
)

// Provider is the provider. The zero value is ready to use.
type Provider struct{}

// Settings is this provider's section of the config.
type Settings struct {
	Nodes int `json:"nodes,omitempty" jsonschema:"minimum=0,example=3" jsonschema_description:"How many nodes to simulate."`
}

// Name returns the provider's name in the config.
func (Provider) Name() string { return "kwok" }

// Settings returns the defaults.
func (Provider) Settings() any { return Settings{} }

// Validate checks the section: see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	var s Settings
	return config.Decode(section, &s)
}
