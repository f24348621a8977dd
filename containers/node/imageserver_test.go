package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// A registry that cannot listen at first is tried again.
func TestRegistryIsReadyOnceItServes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &node{health: newHealth(time.Now()), logLine: func(string) {}, pulls: http.NotFoundHandler()}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { n.serveImages(ctx, taken.Addr().String()) })
	defer running.Wait()
	defer cancel()

	state := func(want string) func() bool {
		return func() bool { return n.health.report().Parts[partRegistry].State == want }
	}
	require.Eventually(t, state("failed"), 10*time.Second, 5*time.Millisecond)
	require.NoError(t, taken.Close())
	require.Eventually(t, state("ready"), 10*time.Second, 5*time.Millisecond)
}

func TestRegistryServesTheArchive(t *testing.T) {
	l := &layout{blobs: map[digest.Digest][]byte{}}
	plain, inner := l.image("plain"), l.image("inner")
	multi := l.put(ocispec.MediaTypeImageIndex, ocispec.Index{Manifests: []ocispec.Descriptor{inner}})
	l.add("slipway.local/plain:1", plain)
	l.add("slipway.local/team/multi:2", multi)
	a, err := openArchive(l.write(t))
	require.NoError(t, err)
	defer release(a)
	images, err := a.images()
	require.NoError(t, err)
	server := httptest.NewServer(newImageServer(a, images).handler())
	defer server.Close()

	get := func(path string) (*http.Response, []byte) {
		r, err := http.Get(server.URL + path)
		require.NoError(t, err)
		defer release(r.Body)
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r, b
	}
	for path, d := range map[string]ocispec.Descriptor{
		"/v2/plain/manifests/1":                                  plain,
		"/v2/plain/manifests/" + plain.Digest.String():           plain,
		"/v2/team/multi/manifests/2":                             multi,
		"/v2/team/multi/manifests/" + inner.Digest.String():      inner,
		"/v2/plain/blobs/" + digest.FromString("plain").String(): {Digest: digest.FromString("plain"), MediaType: "application/octet-stream"},
	} {
		r, b := get(path)
		require.Equal(t, http.StatusOK, r.StatusCode, path)
		require.Equal(t, l.blobs[d.Digest], b)
		require.Equal(t, d.MediaType, r.Header.Get("Content-Type"))
	}
	for _, path := range []string{"/", "/v2/plain/manifests/2", "/v2/absent/manifests/1", "/v2/plain/manifests/" + multi.Digest.String(), "/v2/plain/blobs/nonsense", "/v2/absent/blobs/" + digest.FromString("plain").String(), "/v2/plain"} {
		r, _ := get(path)
		require.Equal(t, http.StatusNotFound, r.StatusCode, path)
	}
	r, _ := get("/v2/")
	require.Equal(t, http.StatusOK, r.StatusCode)
	w := httptest.NewRecorder()
	newImageServer(a, images).handler().ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/v2/plain/manifests/1", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}
