package preorchestrator

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
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
func generate(ctx context.Context, env *step.Env, _ contract.Nothing) (contract.Nothing, error) {
	_, err := runSecrets(ctx, env, contract.SecretsInput{})
	_, tlsErr := runTLS(ctx, env, contract.TLSInput{Domain: "example.org", Mode: "self-signed"})
	return contract.Nothing{}, errors.Join(err, tlsErr)
}

func generateNow(t *testing.T, env *step.Env) {
	t.Helper()
	_, err := generate(t.Context(), env, contract.Nothing{})
	require.NoError(t, err)
}

// unchanged is the error of a plan of these steps that finds a change.
func unchanged(t *testing.T, env *step.Env) error {
	t.Helper()
	_, err := step.Unchanged(generate)(t.Context(), env, contract.Nothing{})
	return err
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

// TestWhatSomebodyDeletesIsMadeAnew.
func TestWhatSomebodyDeletesIsMadeAnew(t *testing.T) {
	api, env := preparing(t, generates)
	generateNow(t, env)
	first := madeIn(t, api)
	api.Delete(atWeb)
	api.Delete(atLeaf)
	require.ErrorIs(t, unchanged(t, env), plan.ErrChange)
	generateNow(t, env)
	second := madeIn(t, api)
	require.NotEqual(t, first[atWeb]["password"], second[atWeb]["password"])
	require.NotEqual(t, first[atLeaf]["tls.key"], second[atLeaf]["tls.key"])
	require.Equal(t, first[atCA], second[atCA])
}
