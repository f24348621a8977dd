package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// issued are PEM files: the certificate of a server, its key, and that of the authority, of its
// own, that signed it.
type issued struct{ authority, cert, key string }

func (i issued) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(i.cert, i.key)
	require.NoError(t, err)
	return c
}

// issue makes a certificate for an address.
func issue(t *testing.T, ip net.IP) issued {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		return k
	}
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	sign := func(template, parent *x509.Certificate, of, by *ecdsa.PrivateKey) []byte {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &of.PublicKey, by)
		require.NoError(t, err)
		return der
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Slipway's tests"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootKey, ownKey := key(), key()
	root := sign(authority, authority, rootKey, rootKey)
	own := sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "registry"}, IPAddresses: []net.IP{ip}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, authority, ownKey, rootKey)
	encoded, err := x509.MarshalPKCS8PrivateKey(ownKey)
	require.NoError(t, err)
	return issued{file("authority.crt", "CERTIFICATE", root), file("registry.crt", "CERTIFICATE", own), file("registry.key", "PRIVATE KEY", encoded)}
}
