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
	const again = "; or make it again with its values: slipway toolchain -- sh -c 'kubectl get secret -n web "
	for i, want := range []struct{ text, command string }{
		{`write secret web/a: it is of type "Opaque", which never changes, and the release has it as "kubernetes.io/basic-auth"`, again + `a -o yaml --show-managed-fields | sed "s|^type: .*|type: kubernetes.io/basic-auth|" | kubectl replace --force -f -'`},
		{`write secret web/b: it is of type "kubernetes.io/basic-auth", which never changes, and the release has it as "Opaque"`, again + `b -o yaml --show-managed-fields | sed "s|^type: .*|type: Opaque|" | kubectl replace --force -f -'`},
		{`write secret web/d: it is of type "Opaque", which never changes, and the release has it as "x'; touch marker; '"`, ""},
	} {
		require.Equal(t, CodeSecret, all[i].Code)
		require.EqualError(t, all[i], want.text)
		require.Equal(t, "name another Secret in platform.yaml, or give it the type that it has"+want.command+"; then run the same command again", all[i].Fix)
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
