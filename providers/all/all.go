// Package all lists Slipway's providers. Those that it has itself (aws, azure and onprem) only have their
// section of the configuration so far: without a Terraform method, Registry.Get refuses an install.
package all

import (
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
)

// All returns the providers.
func All() *providers.Registry {
	return providers.NewRegistry(local.Provider{}, existing.Provider{}, onPrem{}, aws{}, azure{})
}
