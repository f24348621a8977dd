package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
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

// identityDomain is the parent domain of the identity platform's hosts.
const identityDomain = "identity.test"

// visitor is a browser that knows no user yet. It trusts the deployment's certificates, and finds
// the platform's hosts on the ports that the cluster publishes.
type visitor struct {
	*http.Client

	t *testing.T
}

func (k *kept) visitor(t *testing.T) visitor {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(k.kubectl(t, "get", "configmap", "-n", "identity", "slipway-ca", "-o", `jsonpath={.data.ca\.crt}`))))
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return visitor{t: t, Client: &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, // Pods come and go
		TLSClientConfig:   &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			if strings.HasSuffix(host, "."+identityDomain) {
				host = "127.0.0.1"
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
		},
	}}}
}

// get is what a page of the console says, which answers with a status. Just after its
// pods were replaced, the load balancer may still lead to one that is gone.
func (b visitor) get(path string, status int) string {
	b.t.Helper()
	var r *http.Response
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if r, err = b.Get("https://console." + identityDomain + path); err == nil {
			break
		}
	}
	require.NoError(b.t, err)
	page := body(b.t, r)
	require.Equal(b.t, status, r.StatusCode, page)
	return page
}

// signIn follows the console to Dex, fills in its form, and returns the page at the end.
func (b visitor) signIn(email, password string) string {
	b.t.Helper()
	r, err := b.Get("https://console." + identityDomain + "/login")
	require.NoError(b.t, err)
	form := body(b.t, r)
	require.Equal(b.t, "dex."+identityDomain+":5556", r.Request.URL.Host, form)
	action := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(form)
	require.NotNil(b.t, action, form)
	to, err := r.Request.URL.Parse(strings.ReplaceAll(action[1], "&amp;", "&"))
	require.NoError(b.t, err)
	r, err = b.PostForm(to.String(), url.Values{"login": {email}, "password": {password}})
	require.NoError(b.t, err)
	return body(b.t, r)
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	defer func() { _ = r.Body.Close() }() // only read
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}
