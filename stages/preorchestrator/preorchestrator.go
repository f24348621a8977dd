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
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// Stage is the name of this stage.
const Stage = "preorchestrator"

// The codes of this package's faults.
const (
	CodeForeign     fault.Code = "PRE-001" // a namespace is there and is not ours
	CodeReserved    fault.Code = "PRE-002" // a namespace belongs to Kubernetes
	CodeSecret      fault.Code = "PRE-003" // a secret cannot be made
	CodeCertificate fault.Code = "PRE-004" // the given certificate has problems
	CodeImage       fault.Code = "PRE-005" // no reference is known for an image
	CodeChart       fault.Code = "PRE-006" // the git server's chart cannot be read or rendered
	CodeRelease     fault.Code = "PRE-007" // Helm could not install or upgrade
	CodeGitServer   fault.Code = "PRE-008" // the git server does not do what it must
	CodeSignUp      fault.Code = "PRE-009" // a stranger can make an account on the git server
	CodeManifests   fault.Code = "PRE-010" // Argo CD's manifests are missing or not as expected
	CodePush        fault.Code = "PRE-011" // a push over HTTPS failed
	CodeReconcile   fault.Code = "PRE-012" // Argo CD does not reconcile an Application
)

// Names in the cluster that other steps rely on.
const (
	SystemNamespace = "slipway-system"
	CAName          = "slipway-ca" // Secret and ConfigMap in SystemNamespace; ca.crt is what clients trust

	GiteaNamespace = "gitea"
	GiteaService   = "gitea" // port 443
	GiteaTLS       = "gitea-tls"
	GiteaAdmin     = "gitea-admin"   // Secret: username, password
	GiteaUser      = "gitea-slipway" // Secret: username, password; Slipway pushes and Argo CD reads as this user

	ArgoNamespace   = "argocd"
	ArgoRedis       = "argocd-redis"         // Secret: auth
	ArgoTLSCerts    = "argocd-tls-certs-cm"  // ConfigMap: host → what Argo CD trusts
	ArgoRepository  = "repository-platform"  // Secret: the GitOps tree's address and account
	ArgoCredentials = "repositories-slipway" // Secret: the account for the user's other repositories
)

// Repository is where the GitOps tree is kept on the git server, and Probe what
// the checks push to.
const (
	Repository = "platform"
	Probe      = "probe"
)

// Labels on what Slipway makes.
const (
	ManagedBy       = "app.kubernetes.io/managed-by"
	ManagedByUs     = "slipway"
	DeploymentLabel = "slipway.dev/deployment"
)

// Register adds the stage's steps to reg.
func Register(reg *step.Registry) {
	step.Register(reg, Stage, "namespaces", step.Step[stages.PlatformInput, stages.Namespaces]{Run: runNamespaces})
	step.Register(reg, Stage, "secrets", step.Step[stages.PlatformInput, stages.Secrets]{Run: runSecrets})
	step.Register(reg, Stage, "tls", step.Step[stages.TLSInput, stages.TLS]{Run: runTLS})
	step.Register(reg, Stage, "gitea", step.Step[stages.GiteaInput, stages.Gitea]{Run: runGitea})
	step.Register(reg, Stage, "argocd", step.Step[stages.ArgoCDInput, stages.ArgoCD]{Run: runArgoCD})
	step.Register(reg, Stage, "gitea-push", step.Step[stages.GiteaPushInput, stages.GiteaPush]{Run: runPush, Verify: verifyPush})
	step.Register(reg, Stage, "argocd-reconcile", step.Step[stages.ReconcileInput, stages.Reconcile]{Run: runReconcile, Verify: verifyReconcile})
}

// labels are on everything that Slipway makes for a deployment.
func labels(deployment string) map[string]string {
	return map[string]string{ManagedBy: ManagedByUs, DeploymentLabel: deployment}
}

// connect opens the cluster; its waits report to the step's progress.
func connect(env *step.Env) (*kube.Client, error) {
	c, err := kube.Connect(env.Kubeconfig)
	if err != nil {
		return nil, err
	}
	c.Progress = env.Progress
	return c, nil
}

// load reads the platform release.
func load(env *step.Env) (*platform.Release, error) {
	return platform.Load(os.DirFS(env.PlatformDir))
}

// image is the reference by digest of a short name.
func image(common stages.Common, name string) (string, error) {
	if ref := common.Images[name]; ref != "" {
		return ref, nil
	}
	return "", &fault.Fault{
		Code: CodeImage, Class: fault.Step, Op: "find the image " + name,
		Fix: "build a bundle that holds it: make bundle",
		Err: fmt.Errorf("neither the bundle nor the registry has an image named %s", name),
	}
}
