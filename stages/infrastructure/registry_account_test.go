package infrastructure

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// TestTheAccountIsTakenBack from a namespace that was there before, and nothing else of it.
func TestTheAccountIsTakenBack(t *testing.T) {
	const (
		atSecret  = "/api/v1/namespaces/shop/secrets/" + kube.PullSecret
		atAccount = "/api/v1/namespaces/shop/serviceaccounts/default"
	)
	api := kubetest.Serve(t)
	c, err := kube.Connect(reaching(t, api.URL).Kubeconfig, nil)
	require.NoError(t, err)
	api.Set(t, atAccount, "{metadata: {name: default, namespace: shop}, imagePullSecrets: [{name: own}]}")
	own, ours := map[string]any{"name": "own"}, map[string]any{"name": kube.PullSecret}
	for range 2 {
		require.NoError(t, c.SetPullSecret(t.Context(), "demo", "shop", []byte("{}")))
		require.Equal(t, []any{own, ours}, api.Get(atAccount)["imagePullSecrets"])
	}
	require.NoError(t, c.UnsetPullSecret(t.Context(), "other", "shop"))
	require.Equal(t, []any{own, ours}, api.Get(atAccount)["imagePullSecrets"], "it is another deployment's")
	for range 2 {
		require.NoError(t, c.UnsetPullSecret(t.Context(), "demo", "shop"))
		require.Equal(t, []any{own}, api.Get(atAccount)["imagePullSecrets"])
		require.Nil(t, api.Get(atSecret))
	}
}

// TestServiceAccountsAreOthersToo: their controllers may write to one in between.
func TestServiceAccountsAreOthersToo(t *testing.T) {
	client := fake.NewClientset(&corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "shop"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: kube.PullSecret}, {Name: "own"}},
	})
	conflicts := 0
	client.PrependReactor("update", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return conflicts == 1, nil, apierrors.NewConflict(corev1.Resource("serviceaccounts"), "default", nil)
	})
	require.NoError(t, (&kube.Client{Kubernetes: client}).UnsetPullSecret(t.Context(), "demo", "shop"))
	o, err := client.CoreV1().ServiceAccounts("shop").Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "own"}}, o.ImagePullSecrets)
	require.Equal(t, 2, conflicts)
}

// TestChecksPullWithTheAccount for as long as they last, each with its own Secret: they run
// side by side.
func TestChecksPullWithTheAccount(t *testing.T) {
	const (
		at        = "/api/v1/namespaces/slipway-checks-demo/"
		secret    = at + "secrets/loadbalancer-registry"
		ofAnother = at + "secrets/storage-registry"
	)
	api := kubetest.Serve(t)
	api.Set(t, at+"serviceaccounts/default", "metadata: {name: default}")
	api.Set(t, ofAnother, "{metadata: {name: storage-registry, namespace: slipway-checks-demo, labels: {"+checkLabel+": storage}}}")
	env := reaching(t, api.URL)
	env.RegistryAuthFile = filepath.Join(t.TempDir(), "registry.json")
	require.NoError(t, os.WriteFile(env.RegistryAuthFile, []byte("{}"), 0o600))
	var made, pod map[string]any
	api.Controller = func(path string, o map[string]any) {
		switch path {
		case secret:
			made = o
		case "/apis/apps/v1/namespaces/slipway-checks-demo/deployments/loadbalancer-web":
			pod = o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := loadBalancer(ctx, env, contract.LoadBalancerInput{})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeLoadBalancer}, "nobody rolls it out")
	require.Equal(t, "kubernetes.io/dockerconfigjson", made["type"])
	require.Equal(t, map[string]any{".dockerconfigjson": "e30="}, made["data"])
	require.Equal(t, []any{map[string]any{"name": "loadbalancer-registry"}}, pod["imagePullSecrets"])
	require.Nil(t, api.Get(secret))
	require.NotNil(t, api.Get(ofAnother))
}
