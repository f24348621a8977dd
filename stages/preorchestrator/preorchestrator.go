// Package preorchestrator holds the steps that prepare a cluster for a platform:
// namespaces, secrets, certificates and ConfigMaps; and those that verify by use the git server
// on which apps rest.
//
// Every step observes, converges and verifies; a second run changes nothing. What these steps make
// is also listed in stages/internal/installed, by which it is removed again.
package preorchestrator

import (
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of this package's faults.
const (
	// CodeSecret: a generated secret cannot be made.
	CodeSecret fault.Code = "PRE-003"
	// CodeRequires: what somebody else puts into the cluster did not come in time.
	CodeRequires fault.Code = "PRE-013"
)

// Names of what the steps make in the cluster.
const (
	argoTLSCerts    = "argocd-tls-certs-cm"  // ConfigMap: host → what Argo CD trusts
	argoRepository  = "repository-platform"  // Secret: the GitOps tree's address and account
	argoCredentials = "repositories-slipway" // Secret: the account for the user's other repositories
)

// Register adds the code of the stage's steps to r.
func Register(r *step.Registry) {
	step.Register(r, contract.NamespacesStep(), step.Repeatable(runNamespaces))
	step.Register(r, contract.SecretsStep(), step.Repeatable(runSecrets))
	step.Register(r, contract.TLSStep(), step.Repeatable(runTLS))
	step.Register(r, contract.ConfigMapsStep(), step.Repeatable(runConfigMaps))
	step.Register(r, contract.RequiresStep(), step.Repeatable(runRequires))
	step.Register(r, contract.GitStep(), step.Repeatable(runGit))
	step.Register(r, contract.RepositoryStep(), step.Repeatable(runRepository))
}

// theirs is how many of names, "namespace/name" or namespaces, are not Slipway's own.
func theirs(names []string) int {
	n := 0
	for _, name := range names {
		if namespace, _, _ := strings.Cut(name, "/"); namespace != kube.SystemNamespace {
			n++
		}
	}
	return n
}

// counted is "1 secret" or "2 secrets".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
