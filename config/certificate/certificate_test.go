package certificate_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/certificate"
)

var names = []string{"*.example.org", "example.org", "gitea.gitea.svc", "gitea.gitea.svc.cluster.local"}

func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func issue(t *testing.T, names []string) (ca, leaf certificate.Pair) {
	t.Helper()
	ca, err := certificate.NewCA("demo", at())
	require.NoError(t, err)
	leaf, err = certificate.NewLeaf(ca, names, at())
	require.NoError(t, err)
	return ca, leaf
}

func TestLeafIsTrustedForItsNames(t *testing.T) {
	ca, leaf := issue(t, names)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca.Certificate))
	c, err := certificate.Leaf(leaf.Certificate)
	require.NoError(t, err)
	for _, host := range []string{"gitea.example.org", "example.org", "gitea.gitea.svc", "gitea.gitea.svc.cluster.local"} {
		_, err := c.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: at()})
		require.NoError(t, err, host)
	}
	_, err = c.Verify(x509.VerifyOptions{Roots: pool, DNSName: "other.org", CurrentTime: at()})
	require.Error(t, err)
}

func TestWhenALeafIsMadeAnew(t *testing.T) {
	ca, leaf := issue(t, names)
	other, otherLeaf := issue(t, names)
	_ = other
	require.Empty(t, certificate.LeafProblem(leaf, ca, names, at()))
	require.Empty(t, certificate.LeafProblem(leaf, ca, names, at().Add(334*24*time.Hour)))
	require.Contains(t, certificate.LeafProblem(leaf, ca, names, at().Add(336*24*time.Hour)), "ends on 2027-03-01")
	require.Contains(t, certificate.LeafProblem(leaf, ca, []string{"*.example.net", "example.net"}, at()), "names are")
	require.Contains(t, certificate.LeafProblem(otherLeaf, ca, names, at()), "another CA")
	require.Contains(t, certificate.LeafProblem(certificate.Pair{}, ca, names, at()), "cannot be read")
	mixed := certificate.Pair{Certificate: leaf.Certificate, Key: otherLeaf.Key}
	require.Contains(t, certificate.LeafProblem(mixed, ca, names, at()), "cannot be read")
}

func TestWhenACAIsMadeAnew(t *testing.T) {
	ca, leaf := issue(t, names)
	require.Empty(t, certificate.CAProblem(ca, at()))
	require.Contains(t, certificate.CAProblem(leaf, at()), "no certificate authority")
	require.Contains(t, certificate.CAProblem(ca, at().Add(10*365*24*time.Hour)), "ends on")
	require.Contains(t, certificate.CAProblem(certificate.Pair{}, at()), "cannot be read")
}

func TestGivenReportsEverythingAtOnce(t *testing.T) {
	ca, leaf := issue(t, []string{"*.example.org"})
	_, stranger := issue(t, names)
	chain := append(append([]byte{}, leaf.Certificate...), ca.Certificate...)
	hosts := []string{"gitea.example.org"}

	require.Empty(t, certificate.Given(chain, leaf.Key, nil, hosts, at()))
	require.Empty(t, certificate.Given(leaf.Certificate, leaf.Key, ca.Certificate, hosts, at()))

	errs := certificate.Given(
		append(append([]byte{}, leaf.Certificate...), stranger.Certificate...), stranger.Key, stranger.Certificate,
		[]string{"gitea.example.net", "web.example.org"}, at().Add(400*24*time.Hour))
	text := errors.Join(errs...).Error()
	require.Contains(t, text, "does not belong")
	require.Contains(t, text, "expired on 2027-03-01")
	require.Contains(t, text, "not for gitea.example.net, only for *.example.org")
	require.Contains(t, text, "did not sign")
	require.Contains(t, text, "does not lead to the given CA")
	require.Len(t, errs, 6)

	require.ErrorContains(t, errors.Join(certificate.Given([]byte("x"), leaf.Key, nil, hosts, at())...), "not PEM")
	require.ErrorContains(t, errors.Join(certificate.Given(leaf.Key, leaf.Key, nil, hosts, at())...), "the certificate is a private key")
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}})
	legacy := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}, Bytes: []byte{1}})
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 1, 1}})
	for says, key := range map[string][]byte{
		"the private key is encrypted, and no passphrase is asked for": encrypted, "openssl pkey -in ENCRYPTED -out KEY": append(parameters, legacy...),
		"the private key cannot be used: tls: ": {0x30, 0x82}, "the private key cannot be used: ": leaf.Certificate,
	} {
		errs := certificate.Given(chain, key, nil, hosts, at())
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], says)
	}
	require.Empty(t, certificate.Given(append([]byte("Bag Attributes\nsubject=CN = x\n"), append(chain, "Bag Attributes: <No Attributes>\n"...)...), leaf.Key, nil, hosts, at()))
	require.Empty(t, certificate.Given(chain, append(parameters, bytes.ReplaceAll(leaf.Key, []byte("\n"), []byte("\r\n"))...), nil, hosts, at()))
	backwards := certificate.Given(append(append([]byte{}, ca.Certificate...), leaf.Certificate...), leaf.Key, nil, hosts, at())
	require.Len(t, backwards, 1)
	require.ErrorContains(t, backwards[0], "the first certificate (CN=Slipway CA of demo,O=Slipway) is that of a CA: the server's comes first")

	require.ErrorContains(t, errors.Join(certificate.Given(chain, []byte{}, nil, hosts, at())...), "key is empty")
	require.Empty(t, certificate.Given(chain, nil, nil, hosts, at()), "a key that cannot be read here")
}

func TestIssuersIsWhatAClientTrusts(t *testing.T) {
	ca, leaf := issue(t, names)
	chain := append(append([]byte{}, leaf.Certificate...), ca.Certificate...)
	got, err := certificate.Issuers(chain)
	require.NoError(t, err)
	require.Equal(t, string(ca.Certificate), string(got))
	got, err = certificate.Issuers(leaf.Certificate)
	require.NoError(t, err)
	require.Equal(t, string(leaf.Certificate), string(got))
}
