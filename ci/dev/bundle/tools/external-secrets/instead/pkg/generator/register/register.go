// Package register has the generators that need no service outside of a cluster.
package register

import (
	_ "github.com/external-secrets/external-secrets/pkg/generator/fake"
	_ "github.com/external-secrets/external-secrets/pkg/generator/password"
	_ "github.com/external-secrets/external-secrets/pkg/generator/sshkey"
	_ "github.com/external-secrets/external-secrets/pkg/generator/uuid"
)
