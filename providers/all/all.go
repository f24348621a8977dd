// Package all lists Slipway's providers.
package all

import (
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/aws"
	"github.com/slipway-sh/slipway/providers/azure"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/providers/onprem"
)

// All returns the providers, some of which can only be configured so far.
func All() *providers.Registry {
	return providers.NewRegistry(local.Provider{}, existing.Provider{}, onprem.Provider{}, aws.Provider{}, azure.Provider{})
}
