package main

import (
	"encoding/json"
	"strconv"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
)

// Provider is this program's own: a node like that of provider local, which publishes one port. The
// zero value is ready to use. Terraform root, requirements and add-ons are those of provider local.
type Provider struct{ local.Provider }

// Settings is this provider's section of the configuration.
type Settings struct {
	Port int `json:"port" jsonschema_description:"TCP port, 1024 to 65535, that the node publishes; 6443 and 6444 are its own."`
}

// Name is how a configuration names this provider.
func (Provider) Name() string { return "lab" }

// Settings are the defaults.
func (Provider) Settings() any { return Settings{Port: 8443} }

// Describe says what the provider is.
func (Provider) Describe(s *config.Section) { s.Summary = "a node in the lab" }

// Validate checks the section: see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	s, problems := settings(section)
	if s.Port < 1024 || s.Port > 65535 || s.Port == containers.APIPort || s.Port == containers.HealthPort {
		problems = append(problems, config.Problem{Field: "port", Got: strconv.Itoa(s.Port), Want: "a TCP port, 1024 to 65535, other than the node's own 6443 and 6444"})
	}
	return problems
}

// Cluster is the node of provider local, with a port of ours.
func (p Provider) Cluster(d providers.Deployment) (providers.Cluster, error) {
	s, _ := settings(d.Section)
	d.Section = nil // provider local does not know ours
	c, err := p.Provider.Cluster(d)
	if err == nil {
		c.Local.Ports = []int{s.Port}
	}
	return c, err
}

func settings(section json.RawMessage) (Settings, []config.Problem) {
	s := Settings{Port: 8443}
	if len(section) == 0 {
		return s, nil
	}
	problems := config.Decode(section, &s)
	return s, problems
}
