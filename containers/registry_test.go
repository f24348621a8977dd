package containers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref/refused"
)

func entry(digit string) map[string]lock.Registry {
	return map[string]lock.Registry{"linux/amd64": {Ref: "r", Digest: "sha256:" + strings.Repeat(digit, 64)}}
}

func TestPulled(t *testing.T) {
	pins := &lock.Lock{
		Images:    []lock.Image{{Name: "toolchain", Registry: entry("1")}, {Name: "node", Registry: entry("2")}, {Name: "gitea", Registry: entry("3")}, {Name: "dex", OnDemand: true}},
		Manifests: []lock.Manifest{{Name: "argocd", Registry: entry("4")}},
	}
	refs, added, err := pulled(pins, "registry.example.com/team", "linux/amd64")
	require.NoError(t, err)
	require.Len(t, refs, 4)
	require.Empty(t, added)
	require.Equal(t, "registry.example.com/team/gitea@sha256:"+strings.Repeat("3", 64), refs["gitea"])
	require.Equal(t, "registry.example.com/team/manifests@sha256:"+strings.Repeat("4", 64), refs["manifests"])
	elsewhere, _, err := pulled(pins, "mirror.example.com", "linux/amd64")
	require.NoError(t, err)
	require.Equal(t, (&Images{}).identity(refs), (&Images{}).identity(elsewhere), "the same content in another registry")

	pins.Added = []lock.Added{{Name: "quay.io/team/web:1", Path: "quay.io-team-web", StandsFor: []string{"quay.io/team/web:1"}, Registry: entry("5")}}
	_, added, err = pulled(pins, "registry.example.com/team", "linux/amd64")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"quay.io/team/web:1": "registry.example.com/team/quay.io-team-web@sha256:" + strings.Repeat("5", 64)}, added)
	_, _, err = pulled(pins, "registry.example.com/team", "linux/arm64")
	require.ErrorContains(t, err, "linux/arm64 of: toolchain, node, gitea, manifests of argocd")
	require.NotContains(t, err.Error(), "quay.io/team/web:1", "it was added to the bundle of another platform")
	pins.Added = nil

	pins.Images[2].Registry = nil
	pins.Images[1].Registry = map[string]lock.Registry{}
	_, _, err = pulled(pins, "registry.example.com/team", "linux/amd64")
	require.ErrorIs(t, err, &fault.Fault{Code: refused.CodeNoImage})
	require.ErrorContains(t, err, "linux/amd64 of: node, gitea")
	require.NotContains(t, err.Error(), "dex", "that is on demand")

	_, _, err = pulled(&lock.Lock{}, "registry.example.com", "linux/arm64")
	require.ErrorContains(t, err, "of: toolchain, node")
}

func TestMirror(t *testing.T) {
	for registry, want := range map[string]string{
		"registry.example.com/team":  "https://registry.example.com/team",
		"registry.example.com:5000":  "https://registry.example.com:5000",
		"localhost/slipway":          "",
		"localhost:5000/slipway":     "",
		"127.0.0.1:5000/slipway":     "",
		"192.168.7.7:5000/slipway/x": "https://192.168.7.7:5000/slipway/x",
	} {
		require.Equal(t, want, mirror(registry), registry)
	}
}

func TestRegistryFault(t *testing.T) {
	const ref = "registry.example.com:5000/team/gitea@sha256:00"
	for says, code := range map[string]fault.Code{
		ref + ": not found": refused.CodeNoImage,
		"unexpected status from GET request to https://registry.example.com:5000/v2/: 404 Not Found":                                           refused.CodeNoImage,
		"pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed": refused.CodeLogin,
		"unexpected status from HEAD request: 401 Unauthorized":                                                                                refused.CodeLogin,
		"failed to do request: Head \"https://registry\": dial tcp 192.0.2.1:5000: connect: connection refused":                                refused.CodeUnreachable,
		"dial tcp: lookup registry.example.com: no such host":                                                                                  refused.CodeUnreachable,
		"unexpected commit digest sha256:11, expected sha256:00: failed precondition":                                                          refused.CodeOtherImage,
		"http: server gave HTTP response to HTTPS client":                                                                                      refused.CodePull,
		"something new": refused.CodePull,
		"failed to do request: Head \"https://registry.example.com:5000/v2/\": tls: failed to verify certificate: x509: certificate is valid for localhost, not registry.example.com": refused.CodeCertificate,
		"unexpected status from HEAD request to https://registry.example.com:5000/v2/: 429 Too Many Requests":                                                                         refused.CodeLimit,
		"failed to do request: Head \"https://registry.example.com:5000/v2/\": Proxy Authentication Required":                                                                         refused.CodeProxy,
		// What is quoted decides nothing.
		"failed to do request: Head \"https://registry.example.com:5000/v2/eof/404/manifests/sha256:404401\": dial tcp 192.0.2.1:404: connect: connection refused": refused.CodeUnreachable,
		"failed to copy: sha256:5404: connection reset by peer":                          refused.CodeUnreachable,
		"failed to resolve " + ref + ": unexpected status: 503 Service Unavailable":      refused.CodeUnreachable,
		"sha256:404: something new":                                                      refused.CodePull,
		"tls: certificate signed by GEOFENCE":                                            refused.CodePull,
		"Get \"https://registry.example.com:5000/v2/\": EOF":                             refused.CodeUnreachable,
		"lookup registry.example.com on 192.0.2.53:53: server misbehaving":               refused.CodeUnreachable,
		"Head \"https://unauthorized.example.com/v2/\": net/http: TLS handshake timeout": refused.CodeUnreachable,
	} {
		err := registryFault("gitea", ref, errors.New(says))
		require.ErrorIs(t, err, &fault.Fault{Code: code}, says)
		require.ErrorContains(t, err, "the image gitea from registry.example.com:5000/team")
		require.Equal(t, fault.Preflight, fault.ClassOf(err))
		failed, _ := errors.AsType[*fault.Fault](err)
		require.NotEmpty(t, failed.Fix)
	}
}

// TestRegistryFault_engine: an error of this program's own connection says nothing
// about the registry.
func TestRegistryFault_engine(t *testing.T) {
	const ref = "registry.example.com/gitea@sha256:00"
	for _, broken := range []error{
		&url.Error{Op: "Post", URL: "http://dagger/query", Err: io.EOF},
		&net.OpError{Op: "dial", Net: "unix", Err: errors.New("connect: connection refused")},
	} {
		err := registryFault("gitea", ref, fmt.Errorf("ask: %w", broken))
		require.ErrorIs(t, err, &fault.Fault{Code: refused.CodePull})
		require.ErrorIs(t, err, broken)
		failed, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, failed.Fix, "make engine")
	}
}
