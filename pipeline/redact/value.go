package redact

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
)

// Value is a secret. It is printed, logged and encoded as "***"; only Reveal returns
// its content. The zero value is an empty secret.
type Value struct {
	// A function, because fmt prints unexported fields without calling their
	// methods.
	reveal func() []byte
}

// New returns a secret with a copy of b.
func New(b []byte) Value {
	held := bytes.Clone(b)
	return Value{func() []byte { return bytes.Clone(held) }}
}

// Reveal returns a copy of the secret's content.
func (v Value) Reveal() []byte {
	if v.reveal == nil {
		return nil
	}
	return v.reveal()
}

// Format prints v as "***" for every verb.
func (Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

func (Value) String() string { return hidden }

// MarshalText encodes v as "***".
func (Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue logs v as "***".
func (Value) LogValue() slog.Value { return slog.StringValue(hidden) }
