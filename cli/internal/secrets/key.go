package secrets

import (
	"crypto"
	"errors"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
	"github.com/slipway-sh/slipway/fault"
)

// The keys that sign and verify are where a command line names them: at a path, or file:PATH or
// env:NAME as in the configuration.

// PrivateKey is the private key at a place, and its text, which must be written nowhere. It
// fails with trust.CodeKey.
func PrivateKey(place string) (crypto.Signer, string, error) {
	text, err := readKey(place)
	if err != nil {
		return nil, "", err
	}
	key, err := trust.PrivateKey(text)
	return key, string(text), err
}

// Verifier verifies signatures with the public key at a place. It fails with trust.CodeKey.
func Verifier(place string) (trust.Verifier, error) {
	text, err := readKey(place)
	if err != nil {
		return nil, err
	}
	public, err := trust.PublicKey(text)
	if err != nil {
		return nil, err
	}
	return sigstore.ByKey(public)
}

func readKey(place string) ([]byte, error) {
	ref := config.SecretRef(place)
	if kind, _ := ref.Split(); kind == config.SecretEnv || kind == config.SecretFile {
		text := AtHand(ref)
		if text == nil {
			return nil, NoKey(place, errors.New("it is not there, or empty"))
		}
		return text, nil
	}
	text, err := bounded.File(place, bounded.Written)
	if err != nil {
		return nil, NoKey(place, err)
	}
	return text, nil
}

// NoKey is the fault of a key that cannot be read.
func NoKey(place string, err error) error {
	return &fault.Fault{Code: trust.CodeKey, Class: fault.Usage, Op: "read the key " + place, Err: err,
		Fix: "name a PEM file, or env:NAME for a variable that contains it: --key; for packages also advanced.save.key in the configuration"}
}
