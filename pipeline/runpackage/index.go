package runpackage

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// What the index is, for tools of in-toto and sigstore.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	// PredicateType is the type of what a package's statement says of its files.
	PredicateType = "https://slipway.sh/run-package/v1"
)

// statement is an in-toto statement, version 1.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"` // sorted by name
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

// subject is a file by its digest.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// predicate is what a package says of its run, and of its files besides their digests.
type predicate struct {
	Info
	Files []size `json:"files"` // in the order of the subjects
}

type size struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"` // bytes
	Executable bool   `json:"executable,omitempty"`
}

const algorithm = "sha256"

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// state is the statement of a package.
func state(info Info, files Files) statement {
	info.Format = Format
	s := statement{Type: statementType, PredicateType: PredicateType, Subject: []subject{}, Predicate: predicate{Info: info, Files: []size{}}}
	for _, name := range files.names() {
		f := files[name]
		s.Subject = append(s.Subject, subject{Name: name, Digest: map[string]string{algorithm: sum(f.Data)}})
		s.Predicate.Files = append(s.Predicate.Files, size{Name: name, Size: int64(len(f.Data)), Executable: f.Executable})
	}
	return s
}

// envelope wraps a statement, signed with key unless that is nil.
func envelope(ctx context.Context, s statement, key crypto.Signer) ([]byte, error) {
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
	return encode(e)
}

func encode(e *dsse.Envelope) ([]byte, error) {
	text, err := json.MarshalIndent(e, "", "  ")
	return append(text, '\n'), err
}

// newer says that a package is of a format that this program does not know.
type newer int

func (n newer) Error() string {
	return fmt.Sprintf("it is of format %d, this program reads %d", int(n), Format)
}

// open reads an index.
func open(text []byte) (*dsse.Envelope, statement, error) {
	var e dsse.Envelope
	var s statement
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, s, err
	}
	if again, err := encode(&e); err != nil || !bytes.Equal(again, text) {
		return nil, s, errors.New("it is not as slipway save writes it")
	}
	payload, err := base64.StdEncoding.Strict().DecodeString(e.Payload)
	if err != nil {
		return nil, s, err
	}
	if e.PayloadType != payloadType {
		return nil, s, fmt.Errorf("its payload is %q, not %s", e.PayloadType, payloadType)
	}
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, s, err
	}
	switch {
	case s.Type != statementType || s.PredicateType != PredicateType:
		return nil, s, fmt.Errorf("it states %q, %q", s.Type, s.PredicateType)
	case s.Predicate.Format != Format:
		return nil, s, newer(s.Predicate.Format)
	case len(s.Subject) != len(s.Predicate.Files):
		return nil, s, errors.New("its two lists of files differ")
	}
	seen := map[string]bool{}
	for i, subject := range s.Subject {
		if subject.Name != s.Predicate.Files[i].Name || seen[subject.Name] {
			return nil, s, errors.New("its two lists of files differ")
		}
		if err := checkName(subject.Name); err != nil || subject.Name == IndexFile {
			return nil, s, fmt.Errorf("%q: %w", subject.Name, errors.Join(err, errors.New("no name of a file of a package")))
		}
		seen[subject.Name] = true
	}
	return &e, s, nil
}

// signedBy are the ids of the keys that an index says it is signed with.
func signedBy(e *dsse.Envelope) []string {
	var ids []string
	for _, s := range e.Signatures {
		ids = append(ids, s.KeyID)
	}
	return ids
}

// checkSignature returns the id of the key, and an error unless the index is signed with it.
func checkSignature(ctx context.Context, e *dsse.Envelope, key crypto.PublicKey) ([]string, error) {
	if len(e.Signatures) == 0 {
		return nil, errors.New("it is not signed")
	}
	verify, err := dsse.NewEnvelopeVerifier(verifier{key})
	if err != nil {
		return nil, err
	}
	want, err := keyID(key)
	if err != nil {
		return nil, err
	}
	if _, err := verify.Verify(ctx, e); err != nil {
		return nil, fmt.Errorf("it is not signed with the key %s, but with %q", want, signedBy(e))
	}
	return []string{want}, nil
}
