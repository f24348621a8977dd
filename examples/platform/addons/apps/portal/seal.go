package main

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// sealer keeps what belongs to a browser in cookies that nobody else can read or make.
type sealer struct {
	aead cipher.AEAD
	now  func() time.Time
}

// newSealer takes a key of 64 hexadecimal digits.
func newSealer(key Secret, now func() time.Time) (*sealer, error) {
	raw, err := hex.DecodeString(string(key))
	if err != nil || len(raw) != 32 {
		return nil, errors.New("SESSION_KEY_FILE: want 64 hexadecimal digits") // and not a word about what there is
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("SESSION_KEY_FILE: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("SESSION_KEY_FILE: %w", err)
	}
	return &sealer{aead, now}, nil
}

// sealed is the content of a cookie.
type sealed struct {
	Until time.Time       `json:"until"`
	Value json.RawMessage `json:"value"`
}

// set gives the browser a cookie that open reads for as long as life.
func (s *sealer) set(w http.ResponseWriter, name string, value any, life time.Duration) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("make the cookie %s: %w", name, err)
	}
	text, err := json.Marshal(sealed{s.now().Add(life), raw})
	if err != nil {
		return fmt.Errorf("make the cookie %s: %w", name, err)
	}
	// The name is authenticated too: one cookie is no other one.
	http.SetCookie(w, cookie(name, base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(name))), int(life/time.Second)))
	return nil
}

// open reads a cookie into value. It is false if there is none, or if it is too old or
// not one of ours.
func (s *sealer) open(r *http.Request, name string, value any) bool {
	c, err := r.Cookie(name)
	if err != nil {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	text, err := s.aead.Open(nil, nil, raw, []byte(name))
	if err != nil {
		return false
	}
	var content sealed
	if json.Unmarshal(text, &content) != nil || s.now().After(content.Until) {
		return false
	}
	return json.Unmarshal(content.Value, value) == nil
}

// forget removes a cookie.
func forget(w http.ResponseWriter, name string) { http.SetCookie(w, cookie(name, "", -1)) }

// cookie is one that the browser sends to this host only, over HTTPS only, shows to no
// script and sends along when another site links here, but not with what it posts.
func cookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, MaxAge: seconds, Path: "/",
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}
