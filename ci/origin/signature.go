package origin

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// Signature is the path in a bundle of the signature of its index: a sigstore bundle with an
// in-toto statement in a DSSE envelope.
const Signature = "bundle.sigstore.json"

const (
	payloadType    = "application/vnd.in-toto+json"
	predicateType  = "https://slsa.dev/provenance/v1"
	statementType  = "https://in-toto.io/Statement/v1"
	olderStatement = "https://in-toto.io/Statement/v0.1" // cosign's
)

// Signed fails unless signature is one of a bundle's index by the pair of a public key,
// PEM, ECDSA P-256 or Ed25519. It comes before anything of the bundle runs.
func Signed(index, signature, key []byte) error {
	verify, err := verifier(key)
	if err != nil {
		return err
	}
	is := sumOf(index)
	if err := signs(signature, is, verify); err != nil {
		return untrusted(fmt.Errorf("it is sha256:%s, and %s: %w", is, Signature, err))
	}
	return nil
}

// SignedLock is Signed for a lock file.
func SignedLock(lock, signature, key []byte) error {
	verify, err := verifier(key)
	if err != nil {
		return err
	}
	if err := signs(signature, sumOf(lock), verify); err != nil {
		return UnsignedLock(err)
	}
	return nil
}

// UnsignedLock refuses a lock file without a signature by the key that was given, for err.
func UnsignedLock(err error) error {
	return &Refusal{Code: codeLockSignature, Class: Preflight, Op: "verify the lock file", Err: err,
		Fix: "give the signature that slipway bundle push --key KEY wrote beside it, and the public half of that key, before the function: " +
			"dagger call --lock slipway.lock.json --lock-signature slipway.lock.json.sigstore.json --bundle-key key.pub.pem install"}
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Unsigned refuses a bundle whose signature cannot be read, for err.
func Unsigned(err error) error {
	return untrusted(fmt.Errorf("it has no signature that can be read: %w", err))
}

// verifier checks signatures with the public key that text holds.
func verifier(text []byte) (func(data, sig []byte) bool, error) {
	verify, err := parseKey(text)
	if err != nil {
		return nil, &Refusal{Code: codeKey, Class: Usage, Op: "read the key to verify with", Err: err,
			Fix: "give the public half of the pair, before the function: dagger call --bundle-key key.pub.pem install"}
	}
	return verify, nil
}

func parseKey(text []byte) (func(data, sig []byte) bool, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("it is no PUBLIC KEY in PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case ed25519.PublicKey:
		return func(data, sig []byte) bool { return ed25519.Verify(key, data, sig) }, nil
	case *ecdsa.PublicKey:
		if key.Curve.Params().Name == "P-256" {
			return func(data, sig []byte) bool {
				sum := sha256.Sum256(data)
				return ecdsa.VerifyASN1(key, sum[:], sig)
			}, nil
		}
	}
	return nil, errors.New("it is neither ECDSA P-256 nor Ed25519")
}

// signs fails unless text is a signature that verify takes, for the file with this sha256. It reads
// no more of a sigstore bundle than that: the key is given, and vouches for itself.
func signs(text []byte, sha string, verify func(data, sig []byte) bool) error {
	var b struct {
		Envelope struct {
			PayloadType string `json:"payloadType"`
			Payload     []byte `json:"payload"`
			Signatures  []struct {
				Sig string `json:"sig"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	e := b.Envelope
	if e.PayloadType != payloadType {
		return fmt.Errorf("its payload is %q, not %s", e.PayloadType, payloadType)
	}
	signed := false
	for _, s := range e.Signatures {
		sig, err := base64.StdEncoding.DecodeString(s.Sig)
		// What is signed is the payload with its type and their lengths.
		signed = signed || err == nil && verify(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload), sig)
	}
	if !signed {
		return errors.New("it is not signed with the key of --bundle-key")
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(e.Payload, &s); err != nil {
		return err
	}
	if (s.Type != statementType && s.Type != olderStatement) || s.PredicateType != predicateType {
		return fmt.Errorf("it states %q, %q", s.Type, s.PredicateType)
	}
	if len(s.Subject) == 0 || s.Subject[0].Digest["sha256"] != sha {
		return errors.New("it is the signature of something else")
	}
	return nil
}
