// Package registry holds the providers that Slipway has.
package registry

import (
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/aws"
	"github.com/slipway-sh/slipway/providers/azure"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/providers/onprem"
)

// All are the providers, of which some can be configured only.
func All() *providers.Registry {
	return providers.NewRegistry(local.Provider{}, onprem.Provider{}, aws.Provider{}, azure.Provider{})
}
