package infrastructure

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

// TestTheAccountOfTheRegistryIsTakenOut, also of a namespace whose claims and Secrets stay.
func TestTheAccountOfTheRegistryIsTakenOut(t *testing.T) {
	r := &remover{Remover: &removal.Remover{Deployment: "demo", Rules: platform.Remove{Claims: platform.RemoveKeep}}}
	for name, stays := range map[string]bool{"database": true, kube.PullSecret: false} {
		o := unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}
		o.SetName(name)
		o.SetNamespace("shop")
		o.SetLabels(kube.Labels("demo"))
		require.Equal(t, stays, r.stays(o, map[string]bool{"shop": true}), name)
	}
}

// TestTheAccountIsTakenBack from a namespace that was there before, and nothing else of it.
func TestTheAccountIsTakenBack(t *testing.T) {
	own := corev1.LocalObjectReference{Name: "own"}
	c := &kube.Client{Kubernetes: fake.NewClientset(&corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "shop"}, ImagePullSecrets: []corev1.LocalObjectReference{own},
	})}
	names := func() []corev1.LocalObjectReference {
		o, err := c.Kubernetes.CoreV1().ServiceAccounts("shop").Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(t, err)
		return o.ImagePullSecrets
	}
	for range 2 {
		require.NoError(t, c.SetPullSecret(t.Context(), "demo", "shop", []byte("{}")))
		require.Equal(t, []corev1.LocalObjectReference{own, {Name: kube.PullSecret}}, names())
	}
	require.NoError(t, c.UnsetPullSecret(t.Context(), "other", "shop"))
	require.Len(t, names(), 2, "it is another deployment's")
	for range 2 {
		require.NoError(t, c.UnsetPullSecret(t.Context(), "demo", "shop"))
		require.Equal(t, []corev1.LocalObjectReference{own}, names())
		o, err := c.Secret(t.Context(), "shop", kube.PullSecret)
		require.NoError(t, err)
		require.Nil(t, o)
	}
}
