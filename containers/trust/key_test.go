package trust_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
)

func TestKeys(t *testing.T) {
	encode := func(kind string, der []byte, err error) []byte {
		require.NoError(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for _, key := range []crypto.Signer{ed, p256} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		private := encode("PRIVATE KEY", der, err)
		got, err := trust.PrivateKey(private)
		require.NoError(t, err)
		require.Equal(t, key, got)
		der, err = x509.MarshalPKIXPublicKey(key.Public())
		public := encode("PUBLIC KEY", der, err)
		read, err := trust.PublicKey(public)
		require.NoError(t, err)
		require.Equal(t, key.Public(), read)
		_, err = trust.PrivateKey(public)
		require.ErrorContains(t, err, `it is of the kind "PUBLIC KEY"`)
		_, err = trust.PublicKey(private)
		require.ErrorContains(t, err, `it is of the kind "PRIVATE KEY"`)
	}
	ec, err := x509.MarshalECPrivateKey(p256)
	withParameters := append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), encode("EC PRIVATE KEY", ec, err)...)
	_, err = trust.PrivateKey(withParameters)
	require.NoError(t, err, "as openssl ecparam -genkey writes it")
	wrong, err := x509.MarshalPKCS8PrivateKey(p384)
	other, errOther := x509.MarshalPKIXPublicKey(p384.Public())
	for _, text := range [][]byte{nil, []byte("secret"), encode("PRIVATE KEY", wrong, err), encode("PRIVATE KEY", []byte("secret"), nil), encode("ENCRYPTED SIGSTORE PRIVATE KEY", nil, nil)} {
		_, err := trust.PrivateKey(text)
		require.ErrorIs(t, err, &fault.Fault{Code: trust.CodeKey})
		require.NotContains(t, err.Error(), "secret")
	}
	for _, text := range [][]byte{nil, encode("PUBLIC KEY", other, errOther), encode("PUBLIC KEY", []byte("x"), nil), encode("CERTIFICATE", nil, nil)} {
		_, err := trust.PublicKey(text)
		require.ErrorIs(t, err, &fault.Fault{Code: trust.CodeKey})
	}
}
