package dsse

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/dsse/dssetest"
)

func TestAStatementIsThatOfItsKey(t *testing.T) {
	s := Statement[map[string]int]{
		Type: StatementType, PredicateType: "https://example.com/v1", Predicate: map[string]int{"a": 1},
		Subject: []Subject{{Name: "file", Digest: map[string]string{"sha256": strings.Repeat("ab", 32)}}},
	}
	for kind, key := range dssetest.Keys(t) {
		t.Run(kind, func(t *testing.T) {
			text, err := Sign(t.Context(), s, key)
			require.NoError(t, err)
			e, got, err := Open[map[string]int](text)
			require.NoError(t, err)
			require.Equal(t, s, got)
			again, err := e.Encode()
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
			id, err := e.Verify(t.Context(), key.Public())
			require.NoError(t, err)
			require.Equal(t, []string{id}, e.SignedBy())
			for _, other := range dssetest.Keys(t) {
				_, err = e.Verify(t.Context(), other.Public())
				require.ErrorContains(t, err, "it is not signed with the key")
				require.ErrorContains(t, err, ", but with "+id)
			}
			other := s
			other.Predicate = map[string]int{"a": 2}
			forged, err := Sign(t.Context(), other, nil)
			require.NoError(t, err)
			f, _, err := Open[map[string]int](forged)
			require.NoError(t, err)
			_, err = f.Verify(t.Context(), key.Public())
			require.EqualError(t, err, "it is not signed")
			f.Signatures = e.Signatures
			_, err = f.Verify(t.Context(), key.Public())
			require.ErrorContains(t, err, "it is not signed with the key", "the signature of another statement")
		})
	}
	text, err := Sign(t.Context(), s, nil)
	require.NoError(t, err)
	for _, wrong := range [][]byte{nil, []byte("{}"), bytes.Replace(text, []byte("in-toto"), []byte("other"), 1), bytes.Replace(text, []byte(`"payload": "`), []byte(`"payload": "*`), 1)} {
		_, _, err := Open[map[string]int](wrong)
		require.Error(t, err, "%s", wrong)
	}
}

// Verifying takes as long as each signature of the whole payload: nobody makes many.
func TestAnEnvelopeOfManySignatures(t *testing.T) {
	for says, signatures := range map[string]string{
		"it has 17 signatures, and may have 16":           strings.Repeat(`{"sig":"AAAA"},`, 16) + `{"sig":"AAAA"}`,
		"the id of a key has 257 bytes, and may have 256": `{"keyid":"` + strings.Repeat("x", 257) + `"}`,
		"cannot unmarshal number":                         strings.Repeat("9", 1<<20),
	} {
		_, _, err := Open[any]([]byte(`{"payloadType":"` + payloadType + `","payload":"e30=","signatures":[` + signatures + `]}`))
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 5000)
	}
}

func TestKeys(t *testing.T) {
	encode := func(kind string, der []byte, err error) []byte {
		require.NoError(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for _, key := range dssetest.Keys(t) {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		private := encode("PRIVATE KEY", der, err)
		got, err := PrivateKey(private)
		require.NoError(t, err)
		require.Equal(t, key, got)
		der, err = x509.MarshalPKIXPublicKey(key.Public())
		public := encode("PUBLIC KEY", der, err)
		read, err := PublicKey(public)
		require.NoError(t, err)
		require.Equal(t, key.Public(), read)
		_, err = PrivateKey(public)
		require.ErrorContains(t, err, "it is a public key")
		_, err = PublicKey(private)
		require.ErrorContains(t, err, "it is a private key")
	}
	ec, err := x509.MarshalECPrivateKey(dssetest.Keys(t)["ECDSA"].(*ecdsa.PrivateKey))
	withParameters := append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), encode("EC PRIVATE KEY", ec, err)...)
	_, err = PrivateKey(withParameters)
	require.NoError(t, err, "as openssl ecparam -genkey writes it")
	wrong, err := x509.MarshalPKCS8PrivateKey(p384)
	other, errOther := x509.MarshalPKIXPublicKey(p384.Public())
	for _, text := range [][]byte{nil, []byte("secret"), encode("PRIVATE KEY", wrong, err), encode("PRIVATE KEY", []byte("secret"), nil), encode("ENCRYPTED SIGSTORE PRIVATE KEY", nil, nil)} {
		_, err := PrivateKey(text)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeKey})
		require.NotContains(t, err.Error(), "secret")
	}
	for _, text := range [][]byte{nil, encode("PUBLIC KEY", other, errOther), encode("PUBLIC KEY", []byte("x"), nil), encode("CERTIFICATE", nil, nil)} {
		_, err := PublicKey(text)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeKey})
	}
}

// TestKeysAreNamedPlainly, but for what an envelope could make of them.
func TestKeysAreNamedPlainly(t *testing.T) {
	require.Equal(t, "4b01, c0de", Named([]string{"4b01", "c0de"}))
	require.Equal(t, `4b01, "", "x\n\x1b[2J"`, Named([]string{"4b01", "", "x\n\x1b[2J"}))
}
