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

// PrivateKey reads a key to sign with: PEM, PKCS#8 or as openssl writes
// one of an elliptic curve, ECDSA P-256 or Ed25519. It fails with CodeKey, and quotes nothing.
func PrivateKey(text []byte) (crypto.Signer, error) {
	const op = "read the key to sign with"
	block, _ := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // which openssl puts before a key
		block, _ = pem.Decode(text[len(pem.EncodeToMemory(block)):])
	}
	if block == nil {
		return nil, unusable(op, errors.New("it is not PEM"))
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PUBLIC KEY":
		err = errors.New("it is a public key; the private one signs")
	default:
		err = fmt.Errorf("it is of the kind %q, not PRIVATE KEY (PKCS#8, not encrypted)", block.Type)
	}
	if err != nil {
		return nil, unusable(op, err)
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	}
	return nil, unusable(op, errors.New("it is neither ECDSA P-256 nor Ed25519"))
}

// PublicKey reads a key to verify with: PEM, ECDSA P-256 or Ed25519.
// It fails with CodeKey.
func PublicKey(text []byte) (crypto.PublicKey, error) {
	const op = "read the key to verify with"
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, unusable(op, errors.New("it is not PEM"))
	case block.Type == "PRIVATE KEY" || block.Type == "EC PRIVATE KEY":
		return nil, unusable(op, errors.New("it is a private key; the public one verifies"))
	case block.Type != "PUBLIC KEY":
		return nil, unusable(op, fmt.Errorf("it is of the kind %q, not PUBLIC KEY", block.Type))
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, unusable(op, err)
	}
	switch key := key.(type) {
	case ed25519.PublicKey:
		return key, nil
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	}
	return nil, unusable(op, errors.New("it is neither ECDSA P-256 nor Ed25519"))
}

func unusable(op string, err error) error {
	return &fault.Fault{Code: CodeKey, Class: fault.Usage, Op: op, Err: err, Fix: fixKey}
}
