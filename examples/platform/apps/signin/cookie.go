package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

// sealing encrypts cookies with a key of 64 hexadecimal digits.
func sealing(key web.Secret) (cipher.AEAD, error) {
	raw, err := hex.DecodeString(string(key))
	if err != nil || len(raw) != 32 {
		return nil, errors.New("SESSION_KEY_FILE: want 64 hexadecimal digits") // the error must not quote the key
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealed is the content of a cookie.
type sealed struct {
	Until time.Time `json:"until"`
	Value any       `json:"value"`
}

// set gives the browser a cookie that open reads until life is over.
func (u *Users) set(w http.ResponseWriter, name string, value any, life time.Duration) error {
	text, err := json.Marshal(sealed{time.Now().Add(life), value})
	if err != nil {
		return err
	}
	// The name is authenticated, too: no cookie can take the place of another.
	http.SetCookie(w, cookie(name, base64.RawURLEncoding.EncodeToString(u.aead.Seal(nil, nil, text, []byte(name))), int(life/time.Second)))
	return nil
}

// open reads a cookie into value. It is false if the cookie is missing, too old or not ours.
func (u *Users) open(r *http.Request, name string, value any) bool {
	c, err := r.Cookie(name)
	if err != nil {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	text, err := u.aead.Open(nil, nil, raw, []byte(name))
	content := sealed{Value: value} // a pointer
	return err == nil && json.Unmarshal(text, &content) == nil && time.Now().Before(content.Until)
}

// cookie is sent to this host only, over HTTPS only, and shown to no script. The browser sends it
// when another site links here, but not with what that site posts.
func cookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, MaxAge: seconds, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
