package imageref

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	pulled = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	ref    = "registry.test:5000/team/web@" + pulled
	url5k  = "https://registry.test:5000/v2/team/web/manifests/" + pulled
)

// TestTheWordsOfContainerd: what the resolvers of containerd v2.1.5, which earlier engines had, and
// of v1.6.20, which earlier nodes had, said of servers and proxies that refused them so. The latter
// was compiled by an older Go, which leaves out "tls: failed to verify certificate: ". Those of
// v2.2.9 and v2.4.2, which they have now, were not heard yet.
func TestTheWordsOfContainerd(t *testing.T) {
	for says, want := range map[string]Reason{
		`failed to do request: Head "` + url5k + `": tls: failed to verify certificate: x509: certificate signed by unknown authority`:                                Certificate,
		`failed to do request: Head "` + url5k + `": x509: certificate signed by unknown authority`:                                                                   Certificate,
		`failed to do request: Head "` + url5k + `": tls: failed to verify certificate: x509: certificate is valid for example.com, *.example.com, not registry.test`: Certificate,

		`unexpected status from HEAD request to ` + url5k + `: 401 Unauthorized`:                                                                                                                        Login,
		`unexpected status from HEAD request to ` + url5k + `: 403 Forbidden`:                                                                                                                           Login,
		`pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`:                                                                   Login,
		`failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://registry.test:5000/token?scope=repository%3Ateam%2Fweb%3Apull&service=x: 401 Unauthorized`: Login,
		`failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://registry.test:5000/token?scope=repository%3Ateam%2Fweb%3Apull&service=x: 401 Unauthorized`:     Login,
		`pulling from host registry.test:5000 failed with status code [manifests ` + pulled + `]: 401 Unauthorized`:                                                                                     Login,
		`pulling from host registry.test:5000 failed with status code [manifests ` + pulled + `]: 403 Forbidden`:                                                                                        Login,
		`failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized`:                                                                                                         Login,

		ref + `: not found`: Absent,

		`unexpected status from HEAD request to ` + url5k + `: 429 Too Many Requests`:                                                                                        Limit,
		`httpReadSeeker: failed open: unexpected status from GET request to ` + url5k + ": 429 Too Many Requests\ntoomanyrequests: You have reached your pull rate limit.":   Limit,
		`pulling from host registry.test:5000 failed with status code [manifests ` + pulled + `]: 429 Too Many Requests`:                                                     Limit,
		`httpReadSeeker: failed open: unexpected status code ` + url5k + `: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.`: Limit,

		`failed to do request: Head "` + url5k + `": Proxy Authentication Required`:                                                                      Proxy,
		`failed to do request: Head "` + url5k + `": Forbidden`:                                                                                          Proxy,
		`failed to do request: Head "` + url5k + `": Bad Gateway`:                                                                                        Proxy,
		`failed to do request: Head "` + url5k + `": proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused`:                                Proxy,
		`failed to do request: Head "` + url5k + `": proxyconnect tcp: tls: failed to verify certificate: x509: certificate signed by unknown authority`: Proxy,
		`unexpected status from HEAD request to http://registry.test:5000/v2/team/web/manifests/` + pulled + `: 407 Proxy Authentication Required`:       Proxy,
		`pulling from host registry.test:5000 failed with status code [manifests ` + pulled + `]: 407 Proxy Authentication Required`:                     Proxy,

		`unexpected status from HEAD request to ` + url5k + `: 503 Service Unavailable`:                            Unreachable,
		`pulling from host registry.test:5000 failed with status code [manifests ` + pulled + `]: 502 Bad Gateway`: Unreachable,
		`failed to do request: Head "` + url5k + `": http: server gave HTTP response to HTTPS client`:              PlainHTTP,
	} {
		require.Equal(t, want, ReadReason(says, ref), says)
		whole := `Failed to pull image "` + ref + `": rpc error: code = Unknown desc = failed to pull and unpack image "` + ref + `": failed to resolve reference "` + ref + `": ` + says
		require.Equal(t, want, ReadReason(whole, ref), "as the kubelet repeats it")
		require.Equal(t, want, ReadReason(`input: container.from failed to resolve image "`+ref+`" (platform: "linux/amd64"): failed to resolve source metadata for `+ref+`: `+says, ref), "as the engine repeats it")
	}
}

// TestTheWordsOfOthers are as people met them; where, is beside each.
func TestTheWordsOfOthers(t *testing.T) {
	for says, want := range map[string]Reason{
		// github.com/kata-containers/kata-containers/issues/10109
		`rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/busybox:latest": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/library/busybox/manifests/sha256:50aa4698: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit`: Limit,
		// github.com/aerokube/selenoid/issues/1191
		`Failed to pull image : Error response from daemon: toomanyrequests:`: Limit,
		// github.com/containerd/containerd/issues/4386
		`pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: Login,
		// github.com/containerd/containerd/issues/10662, with a proxy that is not there: github.com/ray-project/ray/issues/46813
		`failed to do request: Head "https://registry-1.docker.io/v2/rayproject/ray/manifests/2.34.0": proxyconnect tcp: dial tcp 127.0.0.1:1082: connect: connection refused`: Proxy,
		// github.com/docker/for-win/issues/9143
		`Error response from daemon: Get https://registry-1.docker.io/v2/: Proxy Authentication Required.`: Proxy,
		// github.com/containerd/containerd/issues/3804
		`failed to do request: Head https://registry.xxx.xxxx/v2/core/portal-backend/manifests/1: x509: certificate signed by unknown authority`: Certificate,
		// github.com/kubernetes/kubernetes/issues/110476
		`Get "https://reg.harbor.com/v2/": x509: certificate relies on legacy Common Name field, use SANs instead`: Certificate,
		// crypto/x509 on macOS
		`Get "https://r.test/v2/": tls: failed to verify certificate: x509: “r.test” certificate is not trusted`: Certificate,
		// A credential helper that is not there, of docker/cli's configfile.
		`error getting credentials - err: exec: "docker-credential-desktop": executable file not found in $PATH, out: `: Login,
		`denied: requested access to the resource is denied`:                                                            Login,
		`open /var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db: permission denied`:                            Unknown,
		`dial tcp: lookup registry.test: no such host`:                                                                  Unreachable,
		`lookup registry.test on 192.0.2.53:53: server misbehaving`:                                                     Unreachable,
		`Head "https://unauthorized.example.com/v2/": net/http: TLS handshake timeout`:                                  Unreachable,
		`unexpected commit digest sha256:11, expected sha256:00: failed precondition`:                                   Other,
		`tls: certificate signed by GEOFENCE`:                                                                           Unknown,
		`dial tcp 192.0.2.1:407: connect: connection refused`:                                                           Unreachable,
		`something new`: Unknown,
	} {
		require.Equal(t, want, ReadReason(says), says)
	}
	require.Equal(t, Absent, ReadReason("docker.io/library/unauthorized:1: not found", "docker.io/library/unauthorized:1"), "a name decides nothing")
}

func TestEachReasonHasACodeAndARemedy(t *testing.T) {
	codes := map[string]bool{}
	for r := Unknown; r <= PlainHTTP; r++ {
		codes[r.Code()] = true
		for _, by := range []Asker{Machine, Engine} {
			require.NotEmpty(t, r.Remedy(by, "registry.test:5000/team"))
			require.NotContains(t, r.Remedy(by, "registry.test:5000/team"), "%")
		}
	}
	require.Len(t, codes, 8, "%v", codes)
	require.Equal(t, "log in with an account that may pull from it: docker login registry.test:5000", Login.Remedy(Engine, "registry.test:5000/team"))
	require.Contains(t, Absent.Remedy(Engine, "registry.test:5000/team"), "push DIR registry.test:5000/team")
}

// proxy answers every CONNECT with a status.
func proxy(t *testing.T, status string) *http.Transport {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n")
			_ = c.Close()
		}
	}()
	return &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()})}
}

// TestRequests: net/http says it so, as it is compiled now.
func TestRequests(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	named := server.Client().Transport.(*http.Transport).Clone()
	named.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	for what, c := range map[string]struct {
		transport http.RoundTripper
		url       string
		want      Reason
	}{
		"its own authority":     {http.DefaultTransport, server.URL, Certificate},
		"another name":          {named, "https://registry.test:5000", Certificate},
		"a proxy with accounts": {proxy(t, "407 Proxy Authentication Required"), "https://registry.test:5000", Proxy},
		"a proxy that forbids":  {proxy(t, "403 Forbidden"), "https://registry.test:5000", Proxy},
		"a proxy that is away":  {&http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}, "https://registry.test:5000", Proxy},
		"nothing listens":       {&http.Transport{}, "https://127.0.0.1:1", Unknown},
	} {
		_, err := (&http.Client{Transport: c.transport}).Get(c.url + "/v2/")
		require.Error(t, err, what)
		require.Equal(t, c.want, RequestReason(err, strings.TrimPrefix(c.url, "https://"), 0), "%s: %v", what, err)
		require.Equal(t, c.want, RequestReason(err, "", http.StatusBadRequest), "%s, and then an answer", what)
	}
	for status, want := range map[int]Reason{
		401: Login, 403: Login, 404: Absent, 407: Proxy, 429: Limit, 500: Unreachable, 503: Unreachable, 400: Unknown, 0: Unknown,
	} {
		require.Equal(t, want, RequestReason(io.ErrUnexpectedEOF, "", status), "%d", status)
	}
}
