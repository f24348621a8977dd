// Package register has the providers of secret stores that need no service outside of a
// cluster. Those of clouds would triple what is compiled.
package register

import (
	_ "github.com/external-secrets/external-secrets/pkg/provider/fake"
	_ "github.com/external-secrets/external-secrets/pkg/provider/kubernetes"
	_ "github.com/external-secrets/external-secrets/pkg/provider/webhook"
)
