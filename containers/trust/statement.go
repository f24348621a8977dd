package trust

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// StatementType is the type of in-toto statements of version 1.
const StatementType = "https://in-toto.io/Statement/v1"

// The types of a signed statement and of a sigstore bundle.
const (
	payloadType = "application/vnd.in-toto+json"
	bundleType  = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// Statement is an in-toto statement about files.
type Statement[P any] struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     P         `json:"predicate"`
}

// Subject is a file by its digests, in hex by algorithm.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Sign returns the text of a sigstore bundle with the statement, signed with key, as cosign
// attest-blob writes it. The same statement makes the same bytes, apart from the signature of an
// ECDSA key.
func (s Statement[P]) Sign(key crypto.Signer) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum, err := fingerprint(key.Public())
	if err != nil {
		return nil, err
	}
	sig, err := sign(key, dsse.PAE(payloadType, payload))
	if err != nil {
		return nil, err
	}
	b := signed{MediaType: bundleType, Envelope: envelope{Payload: payload, PayloadType: payloadType, Signatures: []signature{{sig}}}}
	b.Material.PublicKey.Hint = base64.StdEncoding.EncodeToString(sum)
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// signed is what a sigstore bundle has that is signed with a key.
type signed struct {
	MediaType string `json:"mediaType"`
	Material  struct {
		PublicKey struct {
			Hint string `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	Envelope envelope `json:"dsseEnvelope"`
}

type envelope struct {
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig []byte `json:"sig"`
}

// sign signs data: by ECDSA its sha256, in ASN.1, as cosign and openssl do.
func sign(key crypto.Signer, data []byte) ([]byte, error) {
	if _, ok := key.(ed25519.PrivateKey); ok {
		return key.Sign(nil, data, crypto.Hash(0))
	}
	sum := sha256.Sum256(data)
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}
