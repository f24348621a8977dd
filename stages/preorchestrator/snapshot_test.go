package preorchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store/secret"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	atWeb  = "/api/v1/namespaces/shop/secrets/web"
	atLeaf = "/api/v1/namespaces/shop/secrets/tls"
	atCA   = "/api/v1/namespaces/slipway-system/secrets/slipway-ca"
	atSalt = "/api/v1/namespaces/slipway-system/secrets/slipway-salt"
)

const generates = `
secrets: [{name: web, namespace: shop, keys: [{key: password, generate: password}, {key: again, generate: copyOf, from: shop/web/password}, {key: user, generate: literal, value: admin}]}]
certificates: [{secret: shop/tls, hosts: ["shop.{domain}"]}]
`

// generate runs the steps that make something once.
func generate(ctx context.Context, env *step.Env) error {
	_, err := runSecrets(ctx, env, contract.SecretsInput{})
	_, tlsErr := runTLS(ctx, env, contract.TLSInput{Domain: "example.org", Mode: "self-signed"})
	return errors.Join(err, tlsErr)
}

// madeIn is what the cluster has of that.
func madeIn(t *testing.T, api *kubetest.API) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for _, at := range []string{atWeb, atLeaf, atCA, atSalt} {
		require.NotNil(t, api.Get(at), at)
		out[at] = text(t, api, at)
	}
	return out
}

// TestAClusterInThePlaceOfALostOneGetsTheSameSecrets, and nothing of them is in the state in
// clear.
func TestAClusterInThePlaceOfALostOneGetsTheSameSecrets(t *testing.T) {
	api, env := preparing(t, generates)
	require.NoError(t, generate(t.Context(), env))
	first := madeIn(t, api)
	for _, name := range []string{keptSecrets, keptCertificates} {
		stored, err := os.ReadFile(filepath.Join(env.StateDir, "secrets", name, "000000000000.age"))
		require.NoError(t, err)
		require.NotContains(t, string(stored), first[atWeb]["password"])
		require.NotContains(t, string(stored), "PRIVATE KEY")
	}
	require.NoError(t, generate(dryrun.Context(t.Context()), env), "nothing is left to do")

	other := cluster(t, env, "second")
	require.NoError(t, generate(t.Context(), env))
	require.Equal(t, first, madeIn(t, other))
	require.NoError(t, generate(dryrun.Context(t.Context()), env))
	fresh := step.NewEnv("r2", "preorchestrator/test", step.Dirs{State: env.StateDir, Platform: env.PlatformDir}, os.Stderr, os.Stderr)
	fresh.Deployment = env.Deployment
	require.NoError(t, generate(dryrun.Context(t.Context()), fresh))
	require.NotContains(t, fresh.Clean("it is "+first[atWeb]["password"]), first[atWeb]["password"])
}

// TestWhatSomebodyDeletesIsMadeAnew, as long as it is the same cluster.
func TestWhatSomebodyDeletesIsMadeAnew(t *testing.T) {
	api, env := preparing(t, generates)
	require.NoError(t, generate(t.Context(), env))
	first := madeIn(t, api)
	api.Delete(atWeb)
	api.Delete(atLeaf)
	require.ErrorIs(t, generate(dryrun.Context(t.Context()), env), dryrun.ErrWouldChange)
	require.NoError(t, generate(t.Context(), env))
	second := madeIn(t, api)
	require.NotEqual(t, first[atWeb]["password"], second[atWeb]["password"])
	require.NotEqual(t, first[atLeaf]["tls.key"], second[atLeaf]["tls.key"])
	require.Equal(t, first[atCA], second[atCA])

	other := cluster(t, env, "second")
	require.NoError(t, generate(t.Context(), env))
	require.Equal(t, second, madeIn(t, other), "the last ones are kept")
}

// TestAStateWithoutThemTakesTheSecretsOfTheCluster, as where a state was lost.
func TestAStateWithoutThemTakesTheSecretsOfTheCluster(t *testing.T) {
	api, env := preparing(t, generates)
	require.NoError(t, generate(t.Context(), env))
	first := madeIn(t, api)
	require.NoError(t, os.RemoveAll(filepath.Join(env.StateDir, "secrets", keptSecrets)))
	require.NoError(t, os.RemoveAll(filepath.Join(env.StateDir, "secrets", keptCertificates)))
	require.ErrorIs(t, generate(dryrun.Context(t.Context()), env), dryrun.ErrWouldChange, "a run keeps them")
	require.NoDirExists(t, filepath.Join(env.StateDir, "secrets", keptSecrets))
	require.NoError(t, generate(t.Context(), env))
	require.Equal(t, first, madeIn(t, api))
	other := cluster(t, env, "second")
	require.NoError(t, generate(t.Context(), env))
	require.Equal(t, first, madeIn(t, other))
}

// TestAnInterruptedRestoreGoesOn with the values that are not in the new cluster yet.
func TestAnInterruptedRestoreGoesOn(t *testing.T) {
	api, env := preparing(t, generates)
	require.NoError(t, generate(t.Context(), env))
	first := madeIn(t, api)
	other := cluster(t, env, "second")
	ctx, cancel := context.WithCancel(t.Context())
	other.Controller = func(path string, _ map[string]any) {
		if path == atWeb {
			cancel()
		}
	}
	_, err := runSecrets(ctx, env, contract.SecretsInput{})
	require.Error(t, err)
	require.Nil(t, other.Get(atSalt), "that would have come next")
	other.Controller = nil
	require.NoError(t, generate(t.Context(), env))
	require.Equal(t, first, madeIn(t, other))
}

// TestARotatedValueIsNotRestored in a cluster that gets the release which rotates it.
func TestARotatedValueIsNotRestored(t *testing.T) {
	const rotated = `secrets: [{name: web, namespace: shop, keys: [{key: password, generate: password, rotated: 1.0.0}]}]`
	api, env := preparing(t, `secrets: [{name: web, namespace: shop, keys: [{key: password, generate: password}]}]`)
	run := func() {
		t.Helper()
		_, err := runSecrets(t.Context(), env, contract.SecretsInput{})
		require.NoError(t, err)
	}
	run()
	first := text(t, api, atWeb)["password"]
	other := cluster(t, env, "second")
	release(t, env, rotated)
	run()
	second := text(t, other, atWeb)["password"]
	require.NotEqual(t, first, second)
	third := cluster(t, env, "third")
	run()
	require.Equal(t, second, text(t, third, atWeb)["password"])
}

// TestOfAClusterThatWasThereNothingIsKept: it is not lost with the engine.
func TestOfAClusterThatWasThereNothingIsKept(t *testing.T) {
	_, env := preparing(t, generates)
	env.Existing = true
	require.NoError(t, generate(t.Context(), env))
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	names, err := secret.Open(s, nil).Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}
