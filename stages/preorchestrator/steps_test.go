package preorchestrator

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestTheFirstStepShowsThatAnInstallHasBegun to those who look at the cluster.
func TestTheFirstStepShowsThatAnInstallHasBegun(t *testing.T) {
	api, env := preparing(t, "")
	_, err := step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
	require.ErrorIs(t, err, plan.ErrChange)
	out, err := runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"shop", kube.SystemNamespace}, out.Names)
	require.Equal(t, out.Names, out.Created)
	data := api.Get(atStatus)["data"].(map[string]any)
	require.Equal(t, []any{"InProgress", "installing sample 1.0.0", "r1"}, []any{data["state"], data["message"], data["run"]})

	_, err = step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Equal(t, data, api.Get(atStatus)["data"], "a look shows nothing")

	for _, state := range []string{"Failed", "Waiting"} {
		api.Set(t, atStatus, "data: {state: "+state+"}")
		_, err = step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
		require.ErrorIs(t, err, plan.ErrChange, "of an earlier run")
		out, err = runNamespaces(t.Context(), env, contract.NamespacesInput{})
		require.NoError(t, err)
		require.Empty(t, out.Created)
		require.Equal(t, "InProgress", api.Get(atStatus)["data"].(map[string]any)["state"])
	}
	api.Set(t, atStatus, "data: {state: Success}")
	_, err = step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err, "what is installed stays so")
}

// TestTheClusterTellsTheIdentity of the deployment; a plan for the first time does not, since
// there is none yet.
func TestTheClusterTellsTheIdentity(t *testing.T) {
	api, env := preparing(t, "")
	_, err := runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	told := func() any {
		notes, _ := api.Get("/api/v1/namespaces/slipway-system")["metadata"].(map[string]any)["annotations"].(map[string]any)
		return notes[kube.IdentityAnnotation]
	}
	require.Nil(t, told())

	s, err := env.Store(t.Context())
	require.NoError(t, err)
	own, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	_, err = step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
	require.ErrorIs(t, err, plan.ErrChange, "it is not there yet")
	p := &plan.Plan{}
	_, err = runNamespaces(t.Context(), env.Planned(p.Of("namespaces")), contract.NamespacesInput{})
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(p.Objects()), kube.IdentityAnnotation)
	_, err = runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Equal(t, own.ID, told())
	_, err = step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
}

// prepared are the objects in the list of what is made before components.
func prepared(t *testing.T, env *step.Env) []string {
	t.Helper()
	c, err := kube.Connect(env.Kubeconfig, nil)
	require.NoError(t, err)
	members, err := c.Members(t.Context(), "slipway-prerequisites")
	require.NoError(t, err)
	var out []string
	for _, m := range members {
		out = append(out, m.String())
	}
	return out
}

// TestWhatIsPreparedIsNoted for the release that has it no more.
func TestWhatIsPreparedIsNoted(t *testing.T) {
	_, env := preparing(t, "secrets: [{name: web, namespace: shop, keys: [{key: password, generate: password}]}]\n")
	_, err := runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"Namespace shop", "Secret shop/web"}, prepared(t, env))

	release(t, env, "configMaps: [{name: web, namespace: shop, data: {a: b}}]\n")
	_, err = step.Unchanged(runNamespaces)(t.Context(), env, contract.NamespacesInput{})
	require.ErrorIs(t, err, plan.ErrChange)
	_, err = runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"Namespace shop", "ConfigMap shop/web", "Secret shop/web"}, prepared(t, env))
}

// TestANamespaceIsListedBeforeItIsThere: a run that is killed in between takes it for its own.
func TestANamespaceIsListedBeforeItIsThere(t *testing.T) {
	api, env := preparing(t, "")
	_, err := runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	file := env.PlatformDir + "/" + platform.File
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "namespaces: [", "namespaces: [{name: added}, {name: theirs}, ", 1)), 0o600))
	api.Set(t, "/api/v1/namespaces/theirs", "metadata: {name: theirs}")
	_, err = runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.Nil(t, api.Get("/api/v1/namespaces/added"))
	require.Contains(t, prepared(t, env), "Namespace added")
}

// TestTheCertificatesOfARelease are made where it says, and once.
func TestTheCertificatesOfARelease(t *testing.T) {
	const at = "/api/v1/namespaces/shop/secrets/tls"
	api, env := preparing(t, "certificates: [{secret: shop/tls, hosts: [\"shop.{domain}\"]}]\n")
	in := contract.TLSInput{Domain: "example.org", Mode: "self-signed"}
	_, err := step.Unchanged(runTLS)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange)
	out, err := runTLS(t.Context(), env, in)
	require.NoError(t, err)
	require.Empty(t, out.GitHost, "there is no git server")
	require.Equal(t, "kubernetes.io/tls", api.Get(at)["type"])
	key := text(t, api, at)["tls.key"]
	require.NotContains(t, env.Clean("it is "+key), key)

	before := len(api.Writes())
	_, err = step.Unchanged(runTLS)(t.Context(), env, in)
	require.NoError(t, err)
	again, err := runTLS(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Len(t, api.Writes(), before)
}

// TestLabelsOfASecretComeBack: by the deployment's a destroy finds it in a namespace of
// others. Those of a newer release arrive.
func TestLabelsOfASecretComeBack(t *testing.T) {
	const at, secret = "/api/v1/namespaces/shop/secrets/web", "secrets: [{name: web, namespace: shop, labels: {team: %s}, keys: [{key: password, generate: password}]}]\n"
	api, env := preparing(t, fmt.Sprintf(secret, "a"))
	in := contract.SecretsInput{}
	_, err := runSecrets(t.Context(), env, in)
	require.NoError(t, err)
	password := text(t, api, at)["password"]
	for _, change := range []func(){
		func() { api.Set(t, at, "metadata: {labels: {"+kube.DeploymentLabel+": null, theirs: kept}}") },
		func() { release(t, env, fmt.Sprintf(secret, "b")) },
	} {
		change()
		_, err = step.Unchanged(runSecrets)(t.Context(), env, in)
		require.ErrorIs(t, err, plan.ErrChange)
		_, err = runSecrets(t.Context(), env, in)
		require.NoError(t, err)
		_, err = step.Unchanged(runSecrets)(t.Context(), env, in)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]any{kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo", "team": "b", "theirs": "kept"}, api.Get(at)["metadata"].(map[string]any)["labels"])
	require.Equal(t, password, text(t, api, at)["password"])
}

// TestWhatIsCounted is the release's: a Secret and a namespace of Slipway's own are not.
func TestWhatIsCounted(t *testing.T) {
	_, env := preparing(t, "secrets: [{name: web, namespace: shop, keys: [{key: password, generate: password}]}]\n")
	namespaces, err := runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Equal(t, "1 namespace", counted(theirs(namespaces.Names), "namespace"))
	secrets, err := runSecrets(t.Context(), env, contract.SecretsInput{})
	require.NoError(t, err)
	require.Equal(t, "1 secret", counted(theirs(secrets.Names), "secret"))
	require.Equal(t, 1, theirs(secrets.Created))
	require.Equal(t, "0 secrets", counted(0, "secret"))
}

// TestPodsPullWithTheAccountOfTheRegistry on a cluster that is there.
func TestPodsPullWithTheAccountOfTheRegistry(t *testing.T) {
	const (
		atSecret  = "/api/v1/namespaces/shop/secrets/slipway-registry"
		atAccount = "/api/v1/namespaces/shop/serviceaccounts/default"
		login     = `{"auths":{"registry.example.com":{"username":"puller","password":"r1ght-password"}}}`
	)
	api, env := preparing(t, "")
	env.Existing, env.RegistryAuthFile = true, filepath.Join(t.TempDir(), "registry.json")
	accounts := func() {
		for _, ns := range []string{"shop", kube.SystemNamespace} {
			api.Set(t, "/api/v1/namespaces/"+ns+"/serviceaccounts/default", "{metadata: {name: default, namespace: "+ns+"}, imagePullSecrets: [{name: own}]}")
		}
	}
	accounts()
	give := func(text string) { require.NoError(t, os.WriteFile(env.RegistryAuthFile, []byte(text), 0o600)) }
	_, err := runNamespaces(t.Context(), env, contract.NamespacesInput{Account: "pbkdf2:1"})
	require.ErrorContains(t, err, "is not the one that the run began with")

	give(login)
	in := contract.NamespacesInput{Account: "pbkdf2:1"}
	_, err = runNamespaces(t.Context(), env, in)
	require.NoError(t, err)
	secret := api.Get(atSecret)
	require.Equal(t, "kubernetes.io/dockerconfigjson", secret["type"])
	require.Equal(t, map[string]any{".dockerconfigjson": base64.StdEncoding.EncodeToString([]byte(login))}, secret["data"])
	require.Equal(t, env.Deployment, secret["metadata"].(map[string]any)["labels"].(map[string]any)[kube.DeploymentLabel])
	require.Equal(t, []any{map[string]any{"name": "own"}, map[string]any{"name": "slipway-registry"}}, api.Get(atAccount)["imagePullSecrets"])
	_, err = step.Unchanged(runNamespaces)(t.Context(), env, in)
	require.NoError(t, err, "nothing would change")

	give(strings.ReplaceAll(login, "r1ght", "another"))
	_, err = step.Unchanged(runNamespaces)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange)
	_, err = runNamespaces(t.Context(), env, contract.NamespacesInput{Account: "pbkdf2:2"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{".dockerconfigjson": base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(login, "r1ght", "another")))}, api.Get(atSecret)["data"])

	require.NoError(t, os.Remove(env.RegistryAuthFile))
	_, err = runNamespaces(t.Context(), env, contract.NamespacesInput{})
	require.NoError(t, err)
	require.Nil(t, api.Get(atSecret), "there is none any more")
	require.Equal(t, []any{map[string]any{"name": "own"}}, api.Get(atAccount)["imagePullSecrets"])
}
