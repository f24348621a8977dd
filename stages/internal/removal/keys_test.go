package removal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// TestKeysThatAReleaseHasNoMore go, with labels, where Slipway wrote them last; the other values
// stay as they are.
func TestKeysThatAReleaseHasNoMore(t *testing.T) {
	const (
		at       = "/api/v1/namespaces/shop/secrets/database"
		declared = "namespaces: [{name: shop}]\nsecrets:\n  - {name: database, namespace: shop, labels: {kept: a}, keys: [{key: password, generate: password}, {key: mail, generate: given, from: smtp.password}]}\n"
		fields   = `fieldsV1: {"f:data": {"f:password": {}, "f:mail": {}, "f:old": {}, "f:gone": {}}, "f:metadata": {"f:labels": {"f:kept": {}, "f:dropped": {}, "f:slipway.sh/deployment": {}}}}`
		live     = "metadata: {name: database, namespace: shop, labels: {kept: a, dropped: b, theirs: c, " + kube.DeploymentLabel + ": demo}, " +
			"managedFields: [{manager: slipway, " + fields + `}, {manager: kubectl-edit, fieldsV1: {"f:data": {"f:theirs": {}}}}]}` + "\ndata: {password: eA==, mail: eQ==, old: eg==, theirs: dw==}\n"
		pod = "/api/v1/namespaces/shop/pods/web-0"
	)
	reads := func(ref string) func(*testing.T, *kubetest.API) {
		return func(t *testing.T, api *kubetest.API) {
			api.Set(t, pod, "{metadata: {name: web-0, namespace: shop}, spec: {containers: [{env: [{valueFrom: {secretKeyRef: {name: database, "+ref+"}}}]}]}}")
		}
	}
	for what, c := range map[string]struct {
		change  func(*testing.T, *kubetest.API)
		given   []string
		leftOut []string
		removed []string
		kept    []string
	}{
		"nothing needs them":      {removed: []string{"mail", "old"}},
		"a secret that is given":  {given: []string{"smtp.password"}, removed: []string{"old"}},
		"a pod that reads one":    {change: reads("key: old"), removed: []string{"mail"}, kept: []string{"old: Pod web-0 reads it"}},
		"a pod that needs none":   {change: reads("key: old, optional: true"), removed: []string{"mail", "old"}},
		"what a run has left out": {leftOut: []string{"web"}, kept: []string{"mail: this run has left out web", "old: this run has left out web"}},
		"a claim that no pod has": {
			change: func(t *testing.T, api *kubetest.API) { put(t, api, "PersistentVolumeClaim shop/rows", "") },
			kept: []string{
				"mail: what is in the claim shop/rows, which no pod has, may be worth nothing without it",
				"old: what is in the claim shop/rows, which no pod has, may be worth nothing without it",
			},
		},
		"what is somebody else's": {change: func(t *testing.T, api *kubetest.API) {
			api.Set(t, at, "metadata: {labels: {"+kube.DeploymentLabel+": other}}")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			api, r := on(t)
			api.Set(t, at, live)
			if c.change != nil {
				c.change(t, api)
			}
			was := api.Get(at)["data"].(map[string]any)
			want := map[string]any{"password": "eA==", "mail": "eQ==", "old": "eg==", "theirs": "dw=="}
			require.Equal(t, want, was)
			var all, stays []string
			for _, key := range c.removed {
				delete(want, key)
				all = append(all, "Secret shop/database, key "+key)
			}
			for _, why := range c.kept {
				stays = append(stays, "Secret shop/database, key "+why)
			}
			secrets := preparing(t, declared).SecretsGiven(c.given)
			ours := what != "what is somebody else's"
			labels := map[string]any{"kept": "a", "dropped": "b", "theirs": "c", kube.DeploymentLabel: "demo"}
			if ours && len(c.leftOut) == 0 {
				all = append(all, "Secret shop/database, label dropped")
				delete(labels, "dropped")
			}
			before := api.Writes()
			_, _, err := r.Keys(dryrun.Context(t.Context()), secrets, c.leftOut)
			require.Equal(t, before, api.Writes())
			if len(all) > 0 {
				require.ErrorIs(t, err, dryrun.ErrWouldChange)
			} else {
				require.NoError(t, err)
			}
			removed, kept, err := r.Keys(t.Context(), secrets, c.leftOut)
			require.NoError(t, err)
			require.Equal(t, all, removed)
			require.Equal(t, stays, kept)
			require.Equal(t, want, api.Get(at)["data"])
			if ours {
				require.Equal(t, labels, api.Get(at)["metadata"].(map[string]any)["labels"])
			}
			removed, kept, err = r.Keys(dryrun.Context(t.Context()), secrets, c.leftOut)
			require.NoError(t, err, "nothing is left to do")
			require.Empty(t, removed)
			require.Equal(t, stays, kept)
		})
	}
}

// TestASecretWithoutAKeyAnyMore is deleted: the configuration does not give it any more.
func TestASecretWithoutAKeyAnyMore(t *testing.T) {
	const at = "/api/v1/namespaces/shop/secrets/mail"
	api, r := on(t)
	api.Set(t, at, "metadata: {name: mail, namespace: shop, uid: u, labels: {"+kube.DeploymentLabel+`: demo}, managedFields: [{manager: slipway, fieldsV1: {"f:data": {"f:password": {}}}}]}`+"\ndata: {password: eA==}\n")
	release := preparing(t, "namespaces: [{name: shop}]\nsecrets: [{name: mail, namespace: shop, keys: [{key: password, generate: given, from: smtp.password}]}]\n")
	removed, kept, err := r.Keys(t.Context(), release.SecretsGiven([]string{"smtp.password"}), nil)
	require.NoError(t, err)
	require.Empty(t, append(removed, kept...))
	removed, kept, err = r.Keys(t.Context(), release.SecretsGiven(nil), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"Secret shop/mail"}, removed)
	require.Empty(t, kept)
	require.Nil(t, api.Get(at))
}
