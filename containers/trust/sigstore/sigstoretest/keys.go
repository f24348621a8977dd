package sigstoretest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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
