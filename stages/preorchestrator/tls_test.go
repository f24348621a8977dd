package preorchestrator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/trust"
)

func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func selfSigned(t *testing.T, c *kube.Client, domain string, now time.Time) contract.TLS {
	t.Helper()
	s := &tlsStep{client: c, deployment: "demo", domain: domain, redact: func(string) {}, now: now}
	leaf, roots, err := s.selfSigned(t.Context())
	require.NoError(t, err)
	out, err := s.publish(t.Context(), "self-signed", leaf, roots)
	require.NoError(t, err)
	return out
}

func TestSelfSignedIsMadeOnceAndRenewedInTime(t *testing.T) {
	c := fakeKube()
	first := selfSigned(t, c, "example.org", at())
	require.Equal(t, "gitea.gitea.svc", first.GitHost)
	require.Equal(t, "2027-03-01T12:00:00Z", first.NotAfter)
	ca := data(t, c, kube.SystemNamespace, trust.CA)

	require.Equal(t, first, selfSigned(t, c, "example.org", at().Add(300*24*time.Hour)), "nothing changes while it is good")
	renewed := selfSigned(t, c, "example.org", at().Add(340*24*time.Hour))
	require.NotEqual(t, first.SHA256, renewed.SHA256)
	moved := selfSigned(t, c, "example.net", at().Add(340*24*time.Hour))
	require.NotEqual(t, renewed.SHA256, moved.SHA256)
	require.Equal(t, ca, data(t, c, kube.SystemNamespace, trust.CA), "the CA stays")

	secret, err := c.Kubernetes.CoreV1().Secrets(gitserver.Namespace).Get(t.Context(), giteaTLS, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.SecretTypeTLS, secret.Type)
	require.Equal(t, string(ca["tls.crt"]), string(secret.Data["ca.crt"]))
	trusted, err := c.Kubernetes.CoreV1().ConfigMaps(argo.Namespace).Get(t.Context(), argoTLSCerts, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"gitea.gitea.svc": string(ca["tls.crt"])}, trusted.Data)
	_, err = trust.Roots(t.Context(), c)
	require.NoError(t, err)
}

func TestAGivenCertificateIsUsedUnderItsOwnHost(t *testing.T) {
	ca, err := certificate.NewCA("given", at())
	require.NoError(t, err)
	leaf, err := certificate.NewLeaf(ca, []string{"*.example.org"}, at())
	require.NoError(t, err)
	keyFile := filepath.Join(t.TempDir(), "tls.key")
	require.NoError(t, os.WriteFile(keyFile, leaf.Key, 0o600))

	c := fakeKube()
	var hidden string
	s := &tlsStep{client: c, deployment: "demo", domain: "example.org", redact: func(v string) { hidden = v }, now: at()}
	in := contract.TLSInput{Certificate: string(leaf.Certificate), CA: string(ca.Certificate)}
	pair, roots, err := s.given(keyFile, in, []string{"gitea.example.org"})
	require.NoError(t, err)
	require.Equal(t, string(leaf.Key), hidden)
	out, err := s.publish(t.Context(), "given", pair, roots)
	require.NoError(t, err)
	require.Equal(t, "gitea.example.org", out.GitHost, "the certificate is for no name in the cluster")

	_, _, err = s.given(keyFile+"x", contract.TLSInput{Certificate: in.Certificate}, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: certificate.CodeInvalid})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	s.now = at().Add(400 * 24 * time.Hour)
	_, _, err = s.given(keyFile, in, []string{"gitea.example.net"})
	require.ErrorContains(t, err, "expired")
	require.ErrorContains(t, err, "not for gitea.example.net")
}

func TestHostsAreThoseOfTheHTTPSLinks(t *testing.T) {
	r := &platform.Release{Links: []platform.Link{
		{Name: "a", URLTemplate: "https://a.{domain}:8443/x"},
		{Name: "b", URLTemplate: "http://b.{domain}"},
		{Name: "c", URLTemplate: "https://c.{domain}", Component: "off"},
		{Name: "g", URLTemplate: "https://gitea.{domain}"},
	}}
	in := contract.TLSInput{Domain: "example.org", Disabled: []string{"off"}}
	require.Equal(t, []string{"gitea.example.org", "a.example.org"}, r.Hosts(in.Domain, "demo", in.Disabled))
}
