// Package dns has no providers. There are some 200 of them, with half of all packages of Traefik,
// and in a platform cert-manager is who answers challenges.
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v5/challenge"
)

// NewDNSChallengeProviderByName fails for every name.
func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("the DNS provider %s is not in this program, as no other is", name)
}
