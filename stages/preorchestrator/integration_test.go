package preorchestrator

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestRealSecretThatAReleaseChanges: keys and labels that the release has no more go, but for a
// key that somebody else has set since; a type that the release changes is named.
func TestRealSecretThatAReleaseChanges(t *testing.T) {
	kubeconfig := os.Getenv("SLIPWAY_TEST_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("set SLIPWAY_TEST_KUBECONFIG to the access file of a local node")
	}
	c, err := kube.Connect(kubeconfig, nil)
	require.NoError(t, err)
	ns, err := c.Kubernetes.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-secrets-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, c.Kubernetes.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}))
	})
	key := func(name string) platform.SecretKey {
		return platform.SecretKey{Key: name, Generate: platform.Password, Length: 32}
	}
	login := func(kind string, labels map[string]string, keys ...platform.SecretKey) []platform.Secret {
		return []platform.Secret{{Name: "login", Namespace: ns.Name, Type: kind, Labels: labels, Keys: append(keys, platform.SecretKey{Key: "username", Generate: platform.Literal, Value: "ada"})}}
	}
	now := func() *corev1.Secret {
		t.Helper()
		o, err := c.Kubernetes.CoreV1().Secrets(ns.Name).Get(t.Context(), "login", metav1.GetOptions{})
		require.NoError(t, err)
		return o
	}
	_, _, err = ensureSecrets(t, c, login("", map[string]string{"a": "x", "b": "x"}, key("password"), key("old"), key("edited")))
	require.NoError(t, err)
	_, err = c.Kubernetes.CoreV1().Secrets(ns.Name).Patch(t.Context(), "login", types.MergePatchType, []byte(`{"data":{"edited":"eA==","theirs":"eA=="}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	was := now()

	newer := login("", map[string]string{"a": "x"}, key("password"), key("new"))
	_, _, err = ensureSecrets(t, c, newer)
	require.NoError(t, err)
	require.Equal(t, was.Data["old"], now().Data["old"], "pods of the former release read it still")
	o := now()
	require.Len(t, o.Data["new"], 32)
	require.Equal(t, map[string][]byte{
		"username": []byte("ada"), "password": was.Data["password"], "old": was.Data["old"], "new": o.Data["new"], "edited": []byte("x"), "theirs": []byte("x"),
	}, o.Data)

	typed := login("kubernetes.io/basic-auth", map[string]string{"a": "x"}, key("password"), key("new"))
	_, _, err = ensureSecrets(t, c, typed)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSecret})
	require.Equal(t, o.UID, now().UID)
}
