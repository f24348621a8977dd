package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/fault"
)

// CodeKey: the key cannot be used.
const CodeKey fault.Code = "PKG-004"

const fixKey = "make one: openssl genpkey -algorithm ed25519 -out key.pem (or -algorithm EC -pkeyopt ec_paramgen_curve:P-256); " +
	"its public half: openssl pkey -in key.pem -pubout -out key.pub.pem"

// KeyID is the sha256 of a public key as its PEM file holds it, in hex.
func KeyID(key crypto.PublicKey) (string, error) {
	sum, err := fingerprint(key)
	return hex.EncodeToString(sum), err
}

func fingerprint(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return sum[:], nil
}

// PrivateKey reads a key to sign with: PEM, PKCS#8 or as openssl writes an elliptic curve's, ECDSA
// P-256 or Ed25519. It fails with CodeKey, and quotes nothing.
func PrivateKey(text []byte) (crypto.Signer, error) {
	key, err := readKey("read the key to sign with", text, "PRIVATE KEY", "EC PRIVATE KEY")
	signer, _ := key.(crypto.Signer)
	return signer, err
}

// PublicKey reads a key to verify with: PEM, ECDSA P-256 or Ed25519. It fails with CodeKey.
func PublicKey(text []byte) (crypto.PublicKey, error) {
	return readKey("read the key to verify with", text, "PUBLIC KEY")
}

func readKey(op string, text []byte, kinds ...string) (key any, err error) {
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // which openssl puts before a key
		block, _ = pem.Decode(rest)
	}
	switch {
	case block == nil:
		err = errors.New("it is not PEM")
	case !slices.Contains(kinds, block.Type):
		err = fmt.Errorf("it is of the kind %q, not an unencrypted %s", block.Type, kinds[0])
	case block.Type == "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case block.Type == "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err == nil && !supported(key) {
		err = errors.New("it is neither ECDSA P-256 nor Ed25519")
	}
	if err != nil {
		return nil, &fault.Fault{Code: CodeKey, Class: fault.Usage, Op: op, Err: err, Fix: fixKey}
	}
	return key, nil
}

func supported(key any) bool {
	switch key := key.(type) {
	case ed25519.PrivateKey, ed25519.PublicKey:
		return true
	case *ecdsa.PrivateKey:
		return key.Curve == elliptic.P256()
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256()
	}
	return false
}
