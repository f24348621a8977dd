package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rows is a database in memory, or one that answers with err.
type rows struct {
	all         []SignIn
	maintenance string
	err         error
	hangs       bool
}

func (r *rows) Record(_ context.Context, in SignIn) error {
	if r.err == nil {
		r.all = append([]SignIn{in}, r.all...)
	}
	return r.err
}
func (r *rows) Latest(context.Context) ([]SignIn, error) { return r.all, r.err }
func (r *rows) Check(ctx context.Context) (string, error) {
	if r.hangs {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return r.maintenance, r.err
}

// identity is an issuer that knows one user, or answers with err.
type identity struct{ err error }

func (i identity) Discover(context.Context) error { return i.err }
func (i identity) Begin(context.Context) (Attempt, string, error) {
	return Attempt{State: "st4te", Nonce: "n", Verifier: "v3rifier"}, "https://dex.test/auth?state=st4te", i.err
}
func (i identity) Finish(_ context.Context, a Attempt, code string) (Session, error) {
	if code != "c0de" || a.Verifier != "v3rifier" {
		return Session{}, errors.New("the code is wrong")
	}
	return Session{Subject: "s", Name: "Ada <b>", Email: "ada@slipway.test"}, i.err
}

// console is a console under test.
type console struct {
	handler http.Handler
	log     bytes.Buffer
	now     *clock
}

func newConsole(t *testing.T, r Rows, i Identity) *console {
	t.Helper()
	cookies, now := sealing(t, testKey)
	c := &console{now: now}
	shown := Options{Title: "Rows & more", ClusterID: "cluster-1", Licensee: "Grace"}
	c.handler = Handler(r, i, cookies, shown, slog.New(slog.NewTextHandler(&c.log, nil)))
	return c
}

func (c *console) ask(t *testing.T, method, path string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	t.Helper()
	r := carrying(t, cookies)
	r.Method = method
	var err error
	r.URL, err = url.Parse(path)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

// named is a cookie that a response sets.
func named(t *testing.T, w *httptest.ResponseRecorder, name string) *http.Cookie {
	t.Helper()
	for _, c := range w.Result().Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cookie %s", name)
	return nil
}

func TestAUserSignsInAndOut(t *testing.T) {
	db := &rows{}
	c := newConsole(t, db, identity{})
	first := c.ask(t, "GET", "/")
	require.Contains(t, first.Body.String(), `<a href="/login">Sign in</a>`)
	require.Contains(t, first.Body.String(), "Licensed to Grace")
	require.NotContains(t, first.Body.String(), "cluster-1", "that is for who has signed in")

	login := c.ask(t, "GET", "/login")
	require.Equal(t, http.StatusFound, login.Code)
	require.Equal(t, "https://dex.test/auth?state=st4te", login.Header().Get("Location"))
	attempt := named(t, login, attemptCookie)

	back := c.ask(t, "GET", "/callback?code=c0de&state=st4te", attempt)
	require.Equal(t, http.StatusSeeOther, back.Code, back.Body)
	require.Equal(t, "/", back.Header().Get("Location"))
	require.Negative(t, named(t, back, attemptCookie).MaxAge, "it is good for one answer")
	session := named(t, back, sessionCookie)
	require.Equal(t, []SignIn{{Subject: "s", Name: "Ada <b>", Email: "ada@slipway.test", At: c.now.at}}, db.all)

	page := c.ask(t, "GET", "/", session).Body.String()
	for _, text := range []string{
		"<h1>Rows &amp; more</h1>", "Signed in as <strong>Ada &lt;b&gt;</strong> (ada@slipway.test)",
		"<td>ada@slipway.test</td><td>2026-01-05 09:00:00</td>", "cluster-1", "Licensed to Grace",
	} {
		require.Contains(t, page, text)
	}

	out := c.ask(t, "POST", "/logout", session)
	require.Equal(t, http.StatusSeeOther, out.Code)
	require.Negative(t, named(t, out, sessionCookie).MaxAge)
	c.now.at = c.now.at.Add(sessionLife + time.Second)
	require.Contains(t, c.ask(t, "GET", "/", session).Body.String(), "Sign in", "a session ends")
}

func TestAnswersThatAreNoSignIn(t *testing.T) {
	c := newConsole(t, &rows{}, identity{})
	attempt := named(t, c.ask(t, "GET", "/login"), attemptCookie)
	for name, tc := range map[string]struct {
		path   string
		cookie *http.Cookie
		status int
	}{
		"another browser": {"/callback?code=c0de&state=st4te", nil, http.StatusBadRequest},
		"another attempt": {"/callback?code=c0de&state=other", attempt, http.StatusBadRequest},
		"a refusal":       {"/callback?error=access_denied&state=st4te", attempt, http.StatusForbidden},
		"a wrong code":    {"/callback?code=other&state=st4te", attempt, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			var cookies []*http.Cookie
			if tc.cookie != nil {
				cookies = append(cookies, tc.cookie)
			}
			w := c.ask(t, "GET", tc.path, cookies...)
			require.Equal(t, tc.status, w.Code)
			for _, set := range w.Result().Cookies() {
				require.NotEqual(t, sessionCookie, set.Name)
			}
		})
	}
	require.Contains(t, c.log.String(), "access_denied")
	c.now.at = c.now.at.Add(attemptLife + time.Second)
	require.Equal(t, http.StatusBadRequest, c.ask(t, "GET", "/callback?code=c0de&state=st4te", attempt).Code, "too late")
}

func TestAnotherSiteEndsNoSession(t *testing.T) {
	c := newConsole(t, &rows{}, identity{})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/logout", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
}

func TestHealth(t *testing.T) {
	down := errors.New("dial tcp 10.0.0.7:5432: refused")
	for name, tc := range map[string]struct {
		rows     *rows
		identity identity
		status   int    // of /healthz
		says     string // it
		ready    int    // status of /readyz
	}{
		"all is well":    {&rows{}, identity{}, 200, "ok\n", 200},
		"no database":    {&rows{err: down}, identity{}, 503, "the database does not answer\n", 503},
		"a silent one":   {&rows{hangs: true}, identity{}, 503, "the database does not answer\n", 503},
		"no issuer":      {&rows{}, identity{down}, 503, "the issuer does not answer\n", 200},
		"in maintenance": {&rows{maintenance: "moving house"}, identity{}, 503, "in maintenance: moving house\n", 200},
		"everything":     {&rows{maintenance: "moving house"}, identity{down}, 503, "in maintenance: moving house\nthe issuer does not answer\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t, tc.rows, tc.identity)
			w := c.ask(t, "GET", "/healthz")
			require.Equal(t, tc.status, w.Code)
			require.Equal(t, tc.says, w.Body.String())
			require.Equal(t, tc.ready, c.ask(t, "GET", "/readyz").Code)
			require.Equal(t, 200, c.ask(t, "GET", "/livez").Code)
			if tc.status != 200 && tc.rows.maintenance == "" {
				require.NotContains(t, w.Body.String(), "10.0.0.7")
				require.Regexp(t, "refused|deadline", c.log.String(), "the cause is in the log")
			}
		})
	}
}

func TestFailuresAreNotTold(t *testing.T) {
	db := &rows{}
	c := newConsole(t, db, identity{})
	session := named(t, c.ask(t, "GET", "/callback?code=c0de&state=st4te", named(t, c.ask(t, "GET", "/login"), attemptCookie)), sessionCookie)
	db.err = errors.New("dial tcp 10.0.0.7:5432: refused")
	for _, w := range []*httptest.ResponseRecorder{
		c.ask(t, "GET", "/", session),
		c.ask(t, "GET", "/callback?code=c0de&state=st4te", named(t, c.ask(t, "GET", "/login"), attemptCookie)),
		newConsole(t, db, identity{db.err}).ask(t, "GET", "/login"),
	} {
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "Service Unavailable\n", w.Body.String())
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
	require.Contains(t, c.log.String(), "10.0.0.7")
	require.Equal(t, 404, c.ask(t, "GET", "/admin").Code)
	require.Equal(t, 405, c.ask(t, "GET", "/logout").Code)
}
