package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// RecordError reports that data is not a usable record.
type RecordError struct{ error }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.error }

// torn: it is incomplete or altered.
func torn(err error) error { return &RecordError{fmt.Errorf("it is torn: %w", err)} }

// Foreign is the error of a record of something else.
func Foreign(format string, args ...any) error {
	return &RecordError{fmt.Errorf("it is foreign: %w", fmt.Errorf(format, args...))}
}

// envelope is the stored form of a record. The checksum covers the bytes of Record.
type envelope struct {
	Kind    string          `json:"kind"`
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"`
	Record  json.RawMessage `json:"record"`
}

// Seal encodes a record of the given kind and version, so that Unseal detects incomplete, altered
// and foreign ones. It does not encrypt.
func Seal(kind string, version int, record any) ([]byte, error) {
	body, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode a record of kind %s: %w", kind, err)
	}
	sum := sha256.Sum256(body)
	data, err := json.Marshal(envelope{kind, version, hex.EncodeToString(sum[:]), body})
	if err != nil {
		return nil, fmt.Errorf("encode a record of kind %s: %w", kind, err)
	}
	return append(data, '\n'), nil
}

// Unseal decodes a record that Seal encoded with the same kind and version. The error is
// a *RecordError, after which record must not be used.
func Unseal(data []byte, kind string, version int, record any) error {
	var env envelope
	if err := json.Unmarshal(data, &env); err != nil {
		return torn(err)
	}
	switch {
	case env.Kind != kind:
		return Foreign("it is of kind %q, want %q", env.Kind, kind)
	case env.Version != version:
		return Foreign("it has version %d, want %d", env.Version, version)
	}
	sum := sha256.Sum256(env.Record)
	if got := hex.EncodeToString(sum[:]); got != env.SHA256 {
		return torn(fmt.Errorf("its sha256 is %s, want %q", got, env.SHA256))
	}
	if err := json.Unmarshal(env.Record, record); err != nil {
		return Foreign("%w", err)
	}
	return nil
}
