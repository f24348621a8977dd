package preorchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestASecretOfAnotherTypeIsNamed, and all others of the release too, before anything is written:
// the type of a Secret never changes.
func TestASecretOfAnotherTypeIsNamed(t *testing.T) {
	secret := func(name string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "web"}, Type: kind, Data: map[string][]byte{"password": []byte("generated once")}}
	}
	key := []platform.SecretKey{{Key: "password", Generate: platform.Password}}
	c := fakeKube(secret("a", corev1.SecretTypeOpaque), secret("b", corev1.SecretTypeBasicAuth), secret("c", ""), secret("d", corev1.SecretTypeOpaque))
	_, _, err := ensureSecrets(t, c, []platform.Secret{
		{Name: "new", Namespace: "web", Keys: key}, {Name: "a", Namespace: "web", Type: "kubernetes.io/basic-auth", Keys: key}, {Name: "b", Namespace: "web", Keys: key},
		{Name: "c", Namespace: "web", Type: "Opaque", Keys: key}, {Name: "d", Namespace: "web", Type: "x'; touch marker; '", Keys: key},
	})
	all := fault.All(err)
	require.Len(t, all, 3)
	for i, want := range []string{
		`write secret web/a: it is of type "Opaque", which never changes, and the release has it as "kubernetes.io/basic-auth"`,
		`write secret web/b: it is of type "kubernetes.io/basic-auth", which never changes, and the release has it as "Opaque"`,
		`write secret web/d: it is of type "Opaque", which never changes, and the release has it as "x'; touch marker; '"`,
	} {
		require.Equal(t, CodeSecret, all[i].Code)
		require.EqualError(t, all[i], want)
		require.NotContains(t, all[i].Fix, "marker", "which could be run as a command")
	}
	list, err := c.Kubernetes.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 4, "nothing is written")

	t.Run("of a certificate", func(t *testing.T) {
		err := writeSecret(t.Context(), c, "web", "a", corev1.SecretTypeTLS, kube.Labels("demo"), map[string][]byte{"tls.crt": []byte("x")})
		require.ErrorIs(t, err, &fault.Fault{Code: CodeSecret})
		require.Equal(t, "generated once", string(data(t, c, "web", "a")["password"]))
	})
}
