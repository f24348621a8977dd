package main

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dialing sends connections to hosts elsewhere.
func dialing(to map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, to[address])
	}
}

// fill is what a person does with the form of Dex.
func fill(t *testing.T, browser *http.Client, r *http.Response, email, password string) (page string, at *url.URL) {
	t.Helper()
	form, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, "dex."+domain+":5556", r.Request.URL.Host, string(form))
	action := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindSubmatch(form)
	require.NotNil(t, action, string(form))
	to, err := r.Request.URL.Parse(strings.ReplaceAll(string(action[1]), "&amp;", "&"))
	require.NoError(t, err)
	answer, err := browser.PostForm(to.String(), url.Values{"login": {email}, "password": {password}})
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return string(body), answer.Request.URL
}

// TestSigningInThroughDex: everything but the cluster. The database is as the platform's
// Jobs make it, Dex has the platform's configuration, and the administrator signs in as a
// browser does.
func TestSigningInThroughDex(t *testing.T) {
	s, p := postgres(t), newPair(t)
	d := startDex(t, s, p)
	_, err := Migrate(t.Context(), s.database("console", "console"))
	require.NoError(t, err)

	admin := AdminConfig{API: d.grpc, CA: filepath.Join(p.dir, "ca.crt"), Email: "Admin@slipway.test", Name: "admin", ID: "id-1", Password: "s3cret"}
	for _, want := range []string{"created", "unchanged"} {
		done, err := CreateAdmin(t.Context(), admin)
		require.NoError(t, err)
		require.Equal(t, want, done)
	}
	admin.Password = "an0ther"
	done, err := CreateAdmin(t.Context(), admin)
	require.NoError(t, err)
	require.Equal(t, "password changed", done)

	store, err := Open(t.Context(), s.database("console", "console"))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	issuer, err := NewIssuer(IssuerConfig{
		URL: configMap(t, "", "settings", "issuer"), CA: admin.CA, ClientID: "console", ClientSecret: "cl1ent",
	}, configMap(t, "", "settings", "console-url"))
	require.NoError(t, err)
	to := map[string]string{"dex." + domain + ":5556": d.https}
	issuer.client.Transport.(*http.Transport).DialContext = dialing(to)
	cookies, err := newSealer(testKey, time.Now)
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(Handler(store, issuer, cookies, Options{Title: "Console"}, slog.New(slog.NewTextHandler(os.Stderr, nil))))
	web.TLS = &tls.Config{Certificates: []tls.Certificate{p.cert}}
	web.StartTLS()
	t.Cleanup(web.Close)
	to["console."+domain+":443"] = web.Listener.Addr().String()

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, Timeout: 20 * time.Second, Transport: &http.Transport{
		DialContext: dialing(to), TLSClientConfig: &tls.Config{RootCAs: p.pool},
	}}
	get := func(path string) *http.Response {
		t.Helper()
		r, err := browser.Get("https://console." + domain + path)
		require.NoError(t, err)
		return r
	}
	health := get("/healthz")
	require.NoError(t, health.Body.Close())
	require.Equal(t, 200, health.StatusCode)

	page, at := fill(t, browser, get("/login"), admin.Email, "s3cret")
	require.Equal(t, "dex."+domain+":5556", at.Host, "the password was changed")
	require.NotContains(t, page, "Signed in as")
	page, at = fill(t, browser, get("/login"), admin.Email, "an0ther")
	require.Equal(t, "https://console."+domain+"/", at.String())
	require.Contains(t, page, "Signed in as <strong>admin</strong> (admin@slipway.test)")
	require.Contains(t, page, "<td>admin</td><td>admin@slipway.test</td>", "the row is in the database")

	rows, err := store.Latest(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.WithinDuration(t, time.Now(), rows[0].At, time.Minute)
}
