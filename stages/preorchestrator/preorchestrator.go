// Package preorchestrator holds the steps that come before the apps: namespaces,
// secrets, the certificate, the git server and Argo CD, each verified by use.
//
// Every step observes, converges and verifies; a second run changes nothing.
package preorchestrator

import (
	"fmt"
	"os"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of this package's faults.
const (
	// CodeForeign: a namespace of the platform is there and is not ours.
	CodeForeign fault.Code = "PRE-001"
	// CodeReserved: the platform asks for a namespace that belongs to
	// Kubernetes.
	CodeReserved fault.Code = "PRE-002"
	// CodeSecret: a generated secret cannot be made.
	CodeSecret fault.Code = "PRE-003"
	// CodeImage: no reference is known for an image.
	CodeImage fault.Code = "PRE-005"
	// CodeChart: the git server's chart cannot be read or rendered.
	CodeChart fault.Code = "PRE-006"
	// CodeRelease: Helm could not install or upgrade.
	CodeRelease fault.Code = "PRE-007"
	// CodeGitServer: the git server does not do what it must.
	CodeGitServer fault.Code = "PRE-008"
	// CodeSignUp: a stranger can make an account on the git server.
	CodeSignUp fault.Code = "PRE-009"
	// CodeManifests: Argo CD's manifests are missing or not as expected.
	CodeManifests fault.Code = "PRE-010"
	// CodePush: a push to the git server over HTTPS failed.
	CodePush fault.Code = "PRE-011"
	// CodeReconcile: Argo CD does not reconcile an Application outside its
	// namespace.
	CodeReconcile fault.Code = "PRE-012"
)

// Names of what the steps make in the cluster.
const (
	giteaTLS        = "gitea-tls"            // Secret
	argoRedis       = "argocd-redis"         // Secret: auth
	argoTLSCerts    = "argocd-tls-certs-cm"  // ConfigMap: host → what Argo CD trusts
	argoRepository  = "repository-platform"  // Secret: the GitOps tree's address and account
	argoCredentials = "repositories-slipway" // Secret: the account for the user's other repositories
)

// The user's repositories on the git server.
const (
	gitops = "platform" // the GitOps tree
	probe  = "probe"    // what the checks push to
)

// Register adds the code of the stage's steps to r.
func Register(r *step.Registry) {
	step.RegisterRepeatable(r, contract.NamespacesStep(), runNamespaces)
	step.RegisterRepeatable(r, contract.SecretsStep(), runSecrets)
	step.RegisterRepeatable(r, contract.TLSStep(), runTLS)
	step.RegisterRepeatable(r, contract.GiteaStep(), runGitea)
	step.RegisterRepeatable(r, contract.ArgoCDStep(), runArgoCD)
	step.RegisterVerified(r, contract.GiteaPushStep(), runPush, verifyPush)
	step.RegisterVerified(r, contract.ReconcileStep(), runReconcile, verifyReconcile)
}

// open reads the platform release and connects to the cluster.
func open(env *step.Env) (*platform.Release, *kube.Client, error) {
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	if err != nil {
		return nil, nil, err
	}
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	return r, c, err
}

// image is the reference by digest of a short name.
func image(images map[string]string, name string) (string, error) {
	if ref := images[name]; ref != "" {
		return ref, nil
	}
	return "", &fault.Fault{
		Code: CodeImage, Class: fault.Step, Op: "find the image " + name,
		Fix: "build a bundle that holds it: make bundle",
		Err: fmt.Errorf("neither the bundle nor the registry has an image named %s", name),
	}
}
