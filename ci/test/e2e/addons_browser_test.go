//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// addonsBrowser knows no user yet. It trusts what it is told to, and finds the platform's hosts
// at its gateway.
type addonsBrowser struct {
	*http.Client
	seen *x509.Certificate // what the gateway showed last
}

func (a addons) browser(t *testing.T, also ...[]byte) *addonsBrowser {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(a.jsonpath(t, `{.data.ca\.crt}`, "configmap", "-n", "traefik", "slipway-ca"))))
	for _, text := range also {
		require.True(t, pool.AppendCertsFromPEM(text))
	}
	gateway := a.gateway(t)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &addonsBrowser{}
	b.Client = &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, VerifyConnection: func(s tls.ConnectionState) error {
			b.seen = s.PeerCertificates[0]
			return nil
		}},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(gateway, port))
		},
	}}
	return b
}

// page is what an address shows, once it does: routes come a moment after their addons.
func (b *addonsBrowser) page(t *testing.T, address string) string {
	t.Helper()
	var last string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		r, err := b.Get(address)
		if err != nil {
			last = err.Error()
			continue
		}
		last = body(t, r)
		if r.StatusCode == http.StatusOK {
			return last
		}
	}
	t.Fatalf("%s: %s", address, last)
	return ""
}

// requireSignIn signs a user in at the portal, which is at a host, through Dex, which is at an
// address.
func (a addons) requireSignIn(t *testing.T, portal, dex string, also ...[]byte) {
	t.Helper()
	b := a.browser(t, also...)
	require.Contains(t, b.page(t, "https://"+portal+"/"), `href="/login"`)
	var form string
	var at *url.URL
	a.becomes(t, 30*time.Second, "the portal to lead to Dex", func() (bool, string) { // whose route and name may have changed as well
		r, err := b.Get("https://" + portal + "/login")
		if err != nil {
			return false, err.Error()
		}
		at, form = r.Request.URL, body(t, r)
		return strings.HasPrefix(at.String(), "https://"+dex+"/"), at.String() + ": " + r.Status + ": " + form
	})
	action := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(form)
	require.NotNil(t, action, form)
	to, err := at.Parse(strings.ReplaceAll(action[1], "&amp;", "&"))
	require.NoError(t, err)
	password, err := base64.StdEncoding.DecodeString(a.jsonpath(t, "{.data.user1}", "secret", "-n", "dex", "users"))
	require.NoError(t, err)
	r, err := b.PostForm(to.String(), url.Values{"login": {"user1@" + addonsDomain}, "password": {string(password)}})
	require.NoError(t, err)
	page := body(t, r)
	require.Contains(t, page, "Signed in as <strong>user1</strong> (user1@"+addonsDomain+")")
	require.Contains(t, page, ">argocd</a>")
}
