// Package trusttest reads signatures in tests.
package trusttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/trust"
)

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
