package dsse

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/slipway-sh/slipway/bounded"
)

const payloadType = "application/vnd.in-toto+json"

// StatementType is that of in-toto statements of version 1, which Sign makes.
const StatementType = "https://in-toto.io/Statement/v1"

// Statement is an in-toto statement.
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

// Envelope is a signed statement. Its payload is not verified until Verify.
type Envelope struct{ dsse.Envelope }

// Sign is the text of an envelope with a statement, signed with key unless that is nil. The
// same statement makes the same bytes, apart from the signature of an ECDSA key.
func Sign[P any](ctx context.Context, s Statement[P], key crypto.Signer) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	e := &dsse.Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload), Signatures: []dsse.Signature{}}
	if key != nil {
		sign, err := dsse.NewEnvelopeSigner(signer{key})
		if err != nil {
			return nil, err
		}
		if e, err = sign.SignPayload(ctx, payloadType, payload); err != nil {
			return nil, err
		}
	}
	return Envelope{*e}.Encode()
}

// Encode is the text of the envelope, as Sign writes it.
func (e Envelope) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(e.Envelope, "", "  ")
	return append(text, '\n'), err
}

// What an envelope may have: verifying takes as long as each signature of the whole payload.
const (
	maxSignatures = 16
	maxKeyID      = 256
)

// Open reads an envelope. What the statement says is not verified.
func Open[P any](text []byte) (*Envelope, Statement[P], error) {
	var e Envelope
	var s Statement[P]
	if err := json.Unmarshal(text, &e.Envelope); err != nil {
		return nil, s, bounded.Error(err)
	}
	if len(e.Signatures) > maxSignatures {
		return nil, s, fmt.Errorf("it has %d signatures, and may have %d", len(e.Signatures), maxSignatures)
	}
	for _, id := range e.SignedBy() {
		if len(id) > maxKeyID {
			return nil, s, fmt.Errorf("the id of a key has %d bytes, and may have %d", len(id), maxKeyID)
		}
	}
	payload, err := base64.StdEncoding.Strict().DecodeString(e.Payload)
	if err != nil {
		return nil, s, err
	}
	if e.PayloadType != payloadType {
		return nil, s, fmt.Errorf("its payload is %.100q, not %s", e.PayloadType, payloadType)
	}
	return &e, s, bounded.Error(json.Unmarshal(payload, &s))
}

// SignedBy are the ids of the keys that the envelope says it is signed with.
func (e *Envelope) SignedBy() []string {
	var ids []string
	for _, s := range e.Signatures {
		ids = append(ids, s.KeyID)
	}
	return ids
}

// Verify returns the id of the key, and an error unless the envelope is signed with it.
func (e *Envelope) Verify(ctx context.Context, key crypto.PublicKey) (string, error) {
	if len(e.Signatures) == 0 {
		return "", errors.New("it is not signed")
	}
	verify, err := dsse.NewEnvelopeVerifier(verifier{key})
	if err != nil {
		return "", err
	}
	want, err := KeyID(key)
	if err != nil {
		return "", err
	}
	if _, err := verify.Verify(ctx, &e.Envelope); err != nil {
		return "", fmt.Errorf("it is not signed with the key %s, but with %s", want, Named(e.SignedBy()))
	}
	return want, nil
}
