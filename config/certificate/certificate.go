// Package certificate creates and validates the platform's TLS certificates. It does no
// I/O.
package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// Pair is a certificate with its private key, both PEM. Certificate may include the chain
// after the leaf.
type Pair struct {
	Certificate []byte
	Key         []byte // PKCS #8; a secret
}

// Lifetimes of certificates, and how early a leaf is renewed.
const (
	caLife      = 10 * 365 * 24 * time.Hour
	leafLife    = 365 * 24 * time.Hour
	RenewBefore = 30 * 24 * time.Hour
)

// NewCA creates the certificate authority of a deployment: ECDSA P-256, ten years.
func NewCA(deployment string, now time.Time) (Pair, error) {
	t := &x509.Certificate{
		Subject:        pkix.Name{CommonName: "Slipway CA of " + deployment, Organization: []string{"Slipway"}},
		NotAfter:       now.Add(caLife),
		IsCA:           true,
		MaxPathLenZero: true,
		KeyUsage:       x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return issue(t, t, nil, now)
}

// NewLeaf creates a serving certificate for names, signed by ca: ECDSA P-256, valid for
// one year, but not longer than the CA.
func NewLeaf(ca Pair, names []string, now time.Time) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, errors.New("make a certificate: no names given")
	}
	parent, signer, err := ca.parse()
	if err != nil {
		return Pair{}, fmt.Errorf("read the CA: %w", err)
	}
	t := &x509.Certificate{
		Subject:     pkix.Name{Organization: []string{"Slipway"}},
		NotAfter:    now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if parent.NotAfter.Before(t.NotAfter) {
		t.NotAfter = parent.NotAfter
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	if len(names[0]) <= 64 {
		t.Subject.CommonName = names[0]
	}
	return issue(t, parent, signer, now)
}

// issue creates a key and its certificate by a template, signed by the key of parent; without a
// signer it is self-signed.
func issue(t, parent *x509.Certificate, signer crypto.Signer, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	if signer == nil {
		signer = key
	}
	t.NotBefore, t.BasicConstraintsValid = now.Add(-5*time.Minute), true
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("make a certificate: %w", err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode a key: %w", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}),
	}, nil
}

// CAProblem returns why ca cannot sign a leaf at now; empty if it can.
func CAProblem(ca Pair, now time.Time) string {
	c, _, err := ca.parse()
	switch {
	case err != nil:
		return "it cannot be read: " + err.Error()
	case !c.IsCA:
		return "it is no certificate authority"
	case now.Add(RenewBefore).After(c.NotAfter):
		return "it ends on " + c.NotAfter.UTC().Format(time.DateOnly)
	}
	return ""
}

// LeafProblem returns why leaf must be replaced; empty if it is readable, signed by ca,
// for exactly names, and valid for at least RenewBefore.
func LeafProblem(leaf, ca Pair, names []string, now time.Time) string {
	c, _, err := leaf.parse()
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	parent, _, err := ca.parse()
	if err != nil {
		return "its CA cannot be read: " + err.Error()
	}
	if err := c.CheckSignatureFrom(parent); err != nil {
		return "another CA signed it"
	}
	if now.Before(c.NotBefore) {
		return "it begins on " + c.NotBefore.UTC().Format(time.DateOnly)
	}
	if left := c.NotAfter.Sub(now); left < RenewBefore {
		return fmt.Sprintf("it ends on %s", c.NotAfter.UTC().Format(time.DateOnly))
	}
	have := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		have = append(have, ip.String())
	}
	want := slices.Clone(names)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return "its names are " + strings.Join(have, ", ")
	}
	return ""
}

// CodeInvalid: the given certificate has problems.
const CodeInvalid fault.Code = "PRE-004"

// Invalid returns the fault for the problems of a given certificate.
func Invalid(err error) error {
	return &fault.Fault{
		Code: CodeInvalid, Class: fault.Usage, Op: "use the given certificate", Err: err,
		Fix: FixInvalid + ", then run the same command again",
	}
}

// FixInvalid is the remedy for a given certificate with problems.
const FixInvalid = "correct the section tls of the configuration"

// Given checks a certificate that the user provides, for hosts at time now. chain is the
// leaf and its intermediates, PEM; key is the leaf's, PEM, or nil if it cannot be read;
// roots are additional CAs to trust, PEM, may be empty. It returns all problems.
func Given(chain, key, roots []byte, hosts []string, now time.Time) []error {
	var errs []error
	certs, err := Parse(chain)
	if err != nil {
		return []error{fmt.Errorf("the certificate is %w", err)}
	}
	leaf := certs[0]
	if leaf.IsCA && !certs[len(certs)-1].IsCA {
		return []error{fmt.Errorf("the first certificate (%s) is that of a CA: the server's comes first, and after it each that signed the one before", leaf.Subject)}
	}
	if key != nil {
		errs = append(errs, keyProblems(chain, key)...)
	}
	if now.Before(leaf.NotBefore) {
		errs = append(errs, fmt.Errorf("the certificate is valid only from %s", leaf.NotBefore.UTC().Format(time.RFC3339)))
	}
	if now.After(leaf.NotAfter) {
		errs = append(errs, fmt.Errorf("the certificate expired on %s", leaf.NotAfter.UTC().Format(time.RFC3339)))
	}
	var missing []string
	for _, h := range hosts {
		if leaf.VerifyHostname(h) != nil {
			missing = append(missing, h)
		}
	}
	if len(missing) > 0 {
		names := "it names no host"
		if len(leaf.DNSNames) > 0 {
			names = "only for " + strings.Join(leaf.DNSNames, ", ")
		}
		errs = append(errs, fmt.Errorf("the certificate is not for %s, %s", strings.Join(missing, ", "), names))
	}
	for i, c := range certs[1:] {
		if err := certs[i].CheckSignatureFrom(c); err != nil {
			errs = append(errs, fmt.Errorf("certificate %d of the chain (%s) did not sign the one before it (%s)",
				i+2, c.Subject, certs[i].Subject))
		}
		if now.After(c.NotAfter) {
			errs = append(errs, fmt.Errorf("certificate %d of the chain (%s) expired on %s", i+2, c.Subject, c.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	if len(roots) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(roots) {
			errs = append(errs, errors.New("the CA holds no certificate"))
		} else if err := verify(certs, pool, now); err != nil {
			errs = append(errs, fmt.Errorf("the certificate does not lead to the given CA: %w", err))
		}
	}
	return errs
}

// keyProblems is why a private key, PEM, is none of the first certificate of chain.
func keyProblems(chain, key []byte) []error {
	if len(key) == 0 {
		return []error{errors.New("the private key is empty")}
	}
	for block, rest := pem.Decode(key); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return []error{errors.New("the private key is encrypted, and no passphrase is asked for: write it without one, openssl pkey -in ENCRYPTED -out KEY")}
		}
	}
	switch _, err := tls.X509KeyPair(chain, key); {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "does not match"):
		return []error{fmt.Errorf("the private key does not belong to the certificate: %w", err)}
	default:
		return []error{fmt.Errorf("the private key cannot be used: %w", err)}
	}
}

// verify checks that the leaf chains up to pool, ignoring dates that are reported
// separately.
func verify(certs []*x509.Certificate, pool *x509.CertPool, now time.Time) error {
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	if now.After(certs[0].NotAfter) || now.Before(certs[0].NotBefore) {
		now = certs[0].NotBefore.Add(time.Second)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

// Leaf returns the first certificate of a PEM chain.
func Leaf(chain []byte) (*x509.Certificate, error) {
	certs, err := Parse(chain)
	if err != nil {
		return nil, err
	}
	return certs[0], nil
}

// Issuers returns what a client needs to trust chain, PEM: everything after the leaf, or
// the leaf itself if it is alone.
func Issuers(chain []byte) ([]byte, error) {
	certs, err := Parse(chain)
	if err != nil {
		return nil, err
	}
	if len(certs) > 1 {
		certs = certs[1:]
	}
	var out []byte
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out, nil
}

// Parse reads certificates, PEM, and nothing else in PEM; text around them counts for nothing, as
// openssl writes it. Its error is what is there instead, which it does not show.
func Parse(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, errors.New("a private key")
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("another kind of PEM block")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a malformed certificate (number %d)", len(certs)+1)
		}
		certs = append(certs, c)
	}
	switch bad := strings.Count(string(text), "-----BEGIN ") - len(certs); {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, errors.New("nothing")
	case len(certs) == 0:
		return nil, errors.New("text that is not PEM")
	case bad > 0:
		return nil, fmt.Errorf("%d certificates, and %d that are malformed PEM", len(certs), bad)
	}
	return certs, nil
}

func (p Pair) parse() (*x509.Certificate, crypto.Signer, error) {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, errors.New("the key cannot sign")
	}
	return pair.Leaf, signer, nil
}
