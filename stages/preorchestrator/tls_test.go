package preorchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// served is a release with a git server and two certificates, of which the second one is
// for it.
func served() *platform.Release {
	return &platform.Release{
		Namespaces: []platform.Namespace{{Name: "code"}, {Name: "cd"}, {Name: "shop"}},
		Certificates: []platform.Certificate{
			{Secret: "shop/shop-tls", Hosts: []string{"shop.{domain}"}},
			{Secret: "code/git-tls", Hosts: []string{"*.{domain}", "{domain}", "git.code.svc"}},
		},
		Components: []platform.Component{{Name: "argocd", Kind: platform.Manifests, Namespace: "cd"}},
		GitOps:     &platform.GitOps{Engine: "argocd", Server: &platform.GitServer{Component: "git-server", Hosts: []string{"git.code.svc", "git.{domain}"}}},
	}
}

func tlsOf(c *kube.Client, r *platform.Release, domain string, now time.Time) *tlsStep {
	return &tlsStep{client: c, release: r, deployment: "demo", domain: domain, redact: func(string) {}, now: now}
}

func selfSigned(t *testing.T, c *kube.Client, domain string, now time.Time) contract.TLS {
	t.Helper()
	out, err := tlsOf(c, served(), domain, now).ensure(t.Context(), contract.TLSInput{Domain: domain, Mode: "self-signed"}, "")
	require.NoError(t, err)
	return out
}

// TestSelfSignedWithMoreToTrust: clients trust what others have issued, too.
func TestSelfSignedWithMoreToTrust(t *testing.T) {
	c := fakeKube()
	other, err := certificate.NewCA("other", at())
	require.NoError(t, err)
	_, err = tlsOf(c, served(), "example.org", at()).ensure(t.Context(), contract.TLSInput{Domain: "example.org", Mode: "self-signed", CA: string(other.Certificate)}, "")
	require.NoError(t, err)
	own := data(t, c, kube.SystemNamespace, kube.CA)["tls.crt"]
	for _, namespace := range []string{kube.SystemNamespace, "code", "cd", "shop"} {
		o, err := c.Kubernetes.CoreV1().ConfigMaps(namespace).Get(t.Context(), kube.CA, metav1.GetOptions{})
		require.NoError(t, err, namespace)
		require.Equal(t, string(own)+string(other.Certificate), o.Data[kube.CAKey], namespace)
	}
	require.Equal(t, string(own), string(data(t, c, "code", "git-tls")["ca.crt"]), "what has issued it, so that who uses it need not start again")
}

// serial is that of the certificate in a Secret.
func serial(t *testing.T, c *kube.Client, namespace, name string) string {
	t.Helper()
	leaf, err := certificate.Leaf(data(t, c, namespace, name)["tls.crt"])
	require.NoError(t, err)
	return leaf.SerialNumber.String()
}

func TestSelfSignedIsMadeOnceAndRenewedInTime(t *testing.T) {
	c := fakeKube()
	first := selfSigned(t, c, "example.org", at())
	require.Equal(t, contract.TLS{Issuer: "self-signed", GitHost: "git.code.svc", NotAfter: "2027-03-01T12:00:00Z"}, first)
	ca, made := data(t, c, kube.SystemNamespace, kube.CA), serial(t, c, "code", "git-tls")

	require.Equal(t, first, selfSigned(t, c, "example.org", at().Add(300*24*time.Hour)), "nothing changes while it is good")
	require.Equal(t, made, serial(t, c, "code", "git-tls"))
	selfSigned(t, c, "example.org", at().Add(340*24*time.Hour))
	renewed := serial(t, c, "code", "git-tls")
	require.NotEqual(t, made, renewed)
	selfSigned(t, c, "example.net", at().Add(340*24*time.Hour))
	require.NotEqual(t, renewed, serial(t, c, "code", "git-tls"))
	require.Equal(t, ca, data(t, c, kube.SystemNamespace, kube.CA), "the CA stays")

	for _, of := range []struct {
		namespace, name string
		is, isNot       []string
	}{
		{"code", "git-tls", []string{"git.code.svc", "any.example.net", "example.net"}, []string{"git.example.org"}},
		{"shop", "shop-tls", []string{"shop.example.net"}, []string{"any.example.net", "git.code.svc"}},
	} {
		secret, err := c.Kubernetes.CoreV1().Secrets(of.namespace).Get(t.Context(), of.name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, corev1.SecretTypeTLS, secret.Type)
		require.Equal(t, kube.Labels("demo"), secret.Labels)
		require.Equal(t, string(ca["tls.crt"]), string(secret.Data["ca.crt"]))
		leaf, err := certificate.Leaf(secret.Data["tls.crt"])
		require.NoError(t, err)
		for _, host := range of.is {
			require.NoError(t, leaf.VerifyHostname(host), of.name)
		}
		for _, host := range of.isNot {
			require.Error(t, leaf.VerifyHostname(host), of.name)
		}
	}
	trusted, err := c.Kubernetes.CoreV1().ConfigMaps("cd").Get(t.Context(), argoTLSCerts, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"git.code.svc": string(ca["tls.crt"])}, trusted.Data)
	require.Equal(t, "argocd", trusted.Labels["app.kubernetes.io/part-of"], "without it Argo CD does not read it")
	for _, namespace := range []string{kube.SystemNamespace, "code", "cd", "shop"} {
		o, err := c.Kubernetes.CoreV1().ConfigMaps(namespace).Get(t.Context(), kube.CA, metav1.GetOptions{})
		require.NoError(t, err, namespace)
		require.Equal(t, map[string]string{kube.CAKey: string(ca["tls.crt"])}, o.Data)
	}
	_, err = kube.Roots(t.Context(), c)
	require.NoError(t, err)
}

// TestCertificatesWithoutAGitServer: Argo CD is told of none.
func TestCertificatesWithoutAGitServer(t *testing.T) {
	c, r := fakeKube(), served()
	r.GitOps = nil
	out, err := tlsOf(c, r, "example.org", at()).ensure(t.Context(), contract.TLSInput{Mode: "self-signed"}, "")
	require.NoError(t, err)
	require.Empty(t, out.GitHost)
	list, err := c.Kubernetes.CoreV1().ConfigMaps("cd").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, kube.CA, list.Items[0].Name)
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
	s := tlsOf(c, served(), "example.org", at())
	s.redact = func(v string) { hidden = v }
	in := contract.TLSInput{Domain: "example.org", Mode: "given", Certificate: string(leaf.Certificate), CA: string(ca.Certificate)}
	out, err := s.ensure(t.Context(), in, keyFile)
	require.NoError(t, err)
	require.Equal(t, string(leaf.Key), hidden)
	require.Equal(t, "git.example.org", out.GitHost, "the certificate is for no name in the cluster")
	require.Equal(t, "given", out.Issuer)
	for _, name := range []string{"code/git-tls", "shop/shop-tls"} {
		namespace, name, _ := strings.Cut(name, "/")
		require.Equal(t, map[string][]byte{"tls.crt": leaf.Certificate, "tls.key": leaf.Key, "ca.crt": ca.Certificate}, data(t, c, namespace, name))
	}
	in.Disabled, s.release.Links = nil, []platform.Link{{Name: "away", URLTemplate: "https://away.example.net"}}
	_, err = s.ensure(t.Context(), in, keyFile)
	require.ErrorIs(t, err, &fault.Fault{Code: certificate.CodeInvalid})
	require.ErrorContains(t, err, "not for away.example.net")
	_, err = s.ensure(t.Context(), contract.TLSInput{Mode: "guess"}, keyFile)
	require.ErrorContains(t, err, `there is no mode "guess"`)

	_, _, err = s.given(keyFile+"x", contract.TLSInput{Certificate: in.Certificate}, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: certificate.CodeInvalid})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	s.now = at().Add(400 * 24 * time.Hour)
	_, _, err = s.given(keyFile, in, []string{"gitea.example.net"})
	require.ErrorContains(t, err, "expired")
	require.ErrorContains(t, err, "not for gitea.example.net")
}

func TestHostsAreThoseOfTheGitServerTheCertificatesAndTheHTTPSLinks(t *testing.T) {
	r := served()
	r.Links = []platform.Link{
		{Name: "a", URLTemplate: "https://a.{domain}:8443/x"},
		{Name: "b", URLTemplate: "http://b.{domain}"},
		{Name: "c", URLTemplate: "https://c.{domain}", Component: "off"},
		{Name: "g", URLTemplate: "https://git.{domain}"},
		{Name: "s", URLTemplate: "https://shop.{domain}"},
	}
	want := []string{"git.example.org", "shop.example.org", "a.example.org"}
	require.Equal(t, want, r.Hosts("example.org", "demo", []string{"off"}), "none of the cluster's own, and no wildcard")

	r.Links = nil
	r.Certificates = []platform.Certificate{{Secret: "code/git-tls", Hosts: []string{"*.{domain}"}}}
	require.Equal(t, []string{"git.example.org"}, r.Hosts("example.org", "demo", nil))
	require.Empty(t, r.Hosts("example.org", "demo", []string{"git-server"}), "no server, no host of it")
	require.Empty(t, r.ForRepository().Hosts("example.org", "demo", nil), "as preflight sees it")
}
