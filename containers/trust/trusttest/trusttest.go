// Package trusttest makes keys and reads signatures in tests.
package trusttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/trust"
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

// Open returns the statement in a sigstore bundle, and fails unless that is signed with the pair
// of key. It shares no code with what signs and verifies.
func Open[P any](t testing.TB, text []byte, key crypto.PublicKey) trust.Statement[P] {
	t.Helper()
	var b struct {
		Envelope struct {
			Payload     []byte
			PayloadType string
			Signatures  []struct{ Sig []byte }
		} `json:"dsseEnvelope"`
	}
	require.NoError(t, json.Unmarshal(text, &b))
	e := b.Envelope
	require.Len(t, e.Signatures, 1)
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	switch key := key.(type) {
	case ed25519.PublicKey:
		require.True(t, ed25519.Verify(key, signed, e.Signatures[0].Sig))
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(signed)
		require.True(t, ecdsa.VerifyASN1(key, sum[:], e.Signatures[0].Sig))
	default:
		t.Fatalf("a key of the kind %T", key)
	}
	var s trust.Statement[P]
	require.NoError(t, json.Unmarshal(e.Payload, &s))
	return s
}
