package sigstoretest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys are new keys to sign with, one of each kind, by its name: Ed25519 and ECDSA.
func Keys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return map[string]crypto.Signer{"Ed25519": ed, "ECDSA": ec}
}

// Files are the PEM files of a new pair of keys.
func Files(t testing.TB) (private, public string) {
	t.Helper()
	half, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	dir := t.TempDir()
	put := func(name, kind string, der []byte, err error) string {
		require.NoError(t, err)
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = put("key.pem", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(half)
	return private, put("key.pub.pem", "PUBLIC KEY", der, err)
}
