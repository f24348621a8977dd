package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testKey is a session key.
const testKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// clock is a time that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func sealing(t *testing.T, key Secret) (*sealer, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}
	s, err := newSealer(key, c.now)
	require.NoError(t, err)
	return s, c
}

// carrying is a request with the cookies of a response.
func carrying(t *testing.T, cookies []*http.Cookie) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

func TestACookieIsReadByWhoMadeIt(t *testing.T) {
	s, now := sealing(t, testKey)
	w := httptest.NewRecorder()
	require.NoError(t, s.set(w, sessionCookie, Session{Name: "Ada Lovelace"}, time.Hour))
	cookies := w.Result().Cookies()
	require.Len(t, cookies, 1)
	c := cookies[0]
	require.True(t, c.Secure && c.HttpOnly, "%+v", c)
	require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.Equal(t, 3600, c.MaxAge)
	require.NotContains(t, c.Value, "Ada Lovelace")

	var got Session
	require.True(t, s.open(carrying(t, cookies), sessionCookie, &got))
	require.Equal(t, "Ada Lovelace", got.Name)

	require.False(t, s.open(carrying(t, nil), sessionCookie, &got), "there is none")
	other := *c
	other.Name = attemptCookie
	require.False(t, s.open(carrying(t, []*http.Cookie{&other}), attemptCookie, &got), "it is another one")
	changed := *c
	changed.Value = strings.Replace(c.Value, c.Value[20:21], map[bool]string{true: "A", false: "B"}[c.Value[20] != 'A'], 1)
	require.False(t, s.open(carrying(t, []*http.Cookie{&changed}), sessionCookie, &got), "somebody changed it")
	stranger, _ := sealing(t, Secret(strings.Repeat("f", 64)))
	require.False(t, stranger.open(carrying(t, cookies), sessionCookie, &got), "it has another key")
	now.at = now.at.Add(time.Hour + time.Second)
	require.False(t, s.open(carrying(t, cookies), sessionCookie, &got), "it is too old")
}

func TestAKeyThatIsNone(t *testing.T) {
	for _, key := range []Secret{"", "s3cret", Secret(testKey[:62]), Secret(strings.Repeat("x", 64))} {
		_, err := newSealer(key, time.Now)
		require.EqualError(t, err, "SESSION_KEY: want 64 hexadecimal digits")
	}
}
