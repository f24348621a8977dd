package containers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

func TestPushed(t *testing.T) {
	of := lock.Pushed{Toolchain: sha("9"), Manifests: sha("4"), Index: bundle.Index{Images: []bundle.Image{
		{Name: "toolchain", Digest: sha("1")}, {Name: "node", Digest: sha("2")}, {Name: "gitea", Digest: sha("3")},
		{Name: "quay.io/team/web:1", Digest: sha("5"), Archive: "images/added/5.tar", StandsFor: []string{"quay.io/team/web:1"}},
	}}}
	images, refs := pushed(of, "registry.example.com/team")
	require.Equal(t, map[string]string{
		"toolchain": "registry.example.com/team/toolchain@" + sha("9"), "node": "registry.example.com/team/node@" + sha("2"),
		"gitea": "registry.example.com/team/gitea@" + sha("3"), "quay.io/team/web:1": "registry.example.com/team/quay.io-team-web@" + sha("5"),
	}, refs)
	require.Len(t, images.Registry, 3)
	require.Equal(t, "slipway.local/gitea@"+sha("3"), images.Refs["gitea"])
	require.Equal(t, refs["gitea"], images.Registry["gitea"])
	require.Equal(t, refs["quay.io/team/web:1"], images.StandsFor["quay.io/team/web:1"])

	file := &lock.File{Bundles: map[string]lock.Pushed{"linux/amd64": of}}
	_, err := FromRegistry(t.Context(), nil, file, "registry.example.com/team", "linux/arm64")
	require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodeNoImage})
	require.ErrorContains(t, err, "no images for linux/arm64, only for linux/amd64")
	require.Equal(t, images, DescribeLock(file, "registry.example.com/team"))
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
		ref + ": not found": imageref.CodeNoImage,
		"unexpected status from GET request to https://registry.example.com:5000/v2/: 404 Not Found":                                           imageref.CodeNoImage,
		"pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed": imageref.CodeLogin,
		"unexpected status from HEAD request: 401 Unauthorized":                                                                                imageref.CodeLogin,
		"failed to do request: Head \"https://registry\": dial tcp 192.0.2.1:5000: connect: connection refused":                                imageref.CodeUnreachable,
		"dial tcp: lookup registry.example.com: no such host":                                                                                  imageref.CodeUnreachable,
		"unexpected commit digest sha256:11, expected sha256:00: failed precondition":                                                          imageref.CodeOtherImage,
		"http: server gave HTTP response to HTTPS client":                                                                                      imageref.CodePull,
		"something new": imageref.CodePull,
		"failed to do request: Head \"https://registry.example.com:5000/v2/\": tls: failed to verify certificate: x509: certificate is valid for localhost, not registry.example.com": imageref.CodeCertificate,
		"unexpected status from HEAD request to https://registry.example.com:5000/v2/: 429 Too Many Requests":                                                                         imageref.CodeLimit,
		"failed to do request: Head \"https://registry.example.com:5000/v2/\": Proxy Authentication Required":                                                                         imageref.CodeProxy,
		// What is quoted decides nothing.
		"failed to do request: Head \"https://registry.example.com:5000/v2/eof/404/manifests/sha256:404401\": dial tcp 192.0.2.1:404: connect: connection refused": imageref.CodeUnreachable,
		"failed to copy: sha256:5404: connection reset by peer":                          imageref.CodeUnreachable,
		"failed to resolve " + ref + ": unexpected status: 503 Service Unavailable":      imageref.CodeUnreachable,
		"sha256:404: something new":                                                      imageref.CodePull,
		"tls: certificate signed by GEOFENCE":                                            imageref.CodePull,
		"Get \"https://registry.example.com:5000/v2/\": EOF":                             imageref.CodeUnreachable,
		"lookup registry.example.com on 192.0.2.53:53: server misbehaving":               imageref.CodeUnreachable,
		"Head \"https://unauthorized.example.com/v2/\": net/http: TLS handshake timeout": imageref.CodeUnreachable,
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
		require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodePull})
		require.ErrorIs(t, err, broken)
		failed, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, failed.Fix, "make engine")
	}
}
