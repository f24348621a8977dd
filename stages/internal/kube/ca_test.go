package kube_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestRootsWithAndWithoutTheDeploymentsOwn: a platform without certificates has no CA, and
// what it shows may be of the system's.
func TestRootsWithAndWithoutTheDeploymentsOwn(t *testing.T) {
	ca, err := certificate.NewCA("demo", time.Now())
	require.NoError(t, err)
	leaf, err := certificate.Leaf(ca.Certificate)
	require.NoError(t, err)
	own := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: kube.SystemNamespace, Name: kube.CA}, Data: map[string]string{kube.CAKey: string(ca.Certificate)},
	}
	roots, err := kube.Roots(t.Context(), &kube.Client{Kubernetes: fake.NewClientset(own)})
	require.NoError(t, err)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots})
	require.NoError(t, err)

	roots, err = kube.Roots(t.Context(), &kube.Client{Kubernetes: fake.NewClientset()})
	require.NoError(t, err)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots})
	require.ErrorAs(t, err, &x509.UnknownAuthorityError{})

	own.Data[kube.CAKey] = "no certificate"
	_, err = kube.Roots(t.Context(), &kube.Client{Kubernetes: fake.NewClientset(own)})
	require.Error(t, err)
}
