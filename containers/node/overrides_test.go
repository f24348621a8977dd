package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// two archives: the bundle's own, and one of an image for several platforms that was added.
func twoArchives(t *testing.T) (a *archive, own, inner, multi ocispec.Descriptor) {
	t.Helper()
	first := &layout{blobs: map[digest.Digest][]byte{}}
	own = first.image("own")
	first.add("slipway.local/pause:1", first.image("pause"))
	first.add("slipway.local/redis:7.0", own)
	second := &layout{blobs: map[digest.Digest][]byte{}}
	inner = second.image("inner")
	inner.Platform = &ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	foreign := ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("for another platform"), Size: 1,
		Platform: &ocispec.Platform{OS: "linux", Architecture: "none"},
	}
	multi = second.put(ocispec.MediaTypeImageIndex, ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{foreign, inner}})
	second.add("docker.io/library/nginx:1", multi)
	a, err := openArchive(first.write(t), second.write(t))
	require.NoError(t, err)
	t.Cleanup(func() { release(a) })
	return a, own, inner, multi
}

func TestSeveralArchivesAreOne(t *testing.T) {
	a, own, inner, multi := twoArchives(t)
	images, err := a.images()
	require.NoError(t, err)
	require.Len(t, images, 3)
	require.Equal(t, "docker.io/library/nginx:1", images[0].name)
	require.Equal(t, imageNames{
		"docker.io/library/nginx:1":                        multi.Digest,
		"docker.io/library/nginx@" + multi.Digest.String(): multi.Digest,
		"docker.io/library/nginx@" + inner.Digest.String(): inner.Digest,
	}, newImageServer(a, images[:1]).names())
	for _, d := range []ocispec.Descriptor{own, inner, multi} {
		_, err := a.read(d)
		require.NoError(t, err)
	}
	_, err = openArchive(a.files[0].Name(), filepath.Join(t.TempDir(), "absent.tar"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestImagesHaveTheNamesThatTheyStandFor(t *testing.T) {
	a, own, _, multi := twoArchives(t)
	images, err := a.images()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overrides.json")
	text, err := json.Marshal([]override{
		{Image: "slipway.local/redis:7.0", Digest: own.Digest.String(), StandsFor: []string{"public.ecr.aws/docker/library/redis:8"}},
		{Image: "docker.io/library/nginx:1", StandsFor: []string{"docker.io/library/nginx:1", "registry.k8s.io/nginx@" + multi.Digest.String()}},
		{Path: "elsewhere", StandsFor: []string{"quay.io/x:1"}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	all, err := readOverrides(file)
	require.NoError(t, err)
	named, err := withOverrides(images, all)
	require.NoError(t, err)
	var names []string
	for _, i := range named {
		names = append(names, i.name)
	}
	require.Equal(t, []string{
		"docker.io/library/nginx:1", "public.ecr.aws/docker/library/redis:8", "registry.k8s.io/nginx@" + multi.Digest.String(),
		"slipway.local/pause:1", "slipway.local/redis:7.0",
	}, names)
	require.Equal(t, own.Digest, named[1].chain[0].Digest)
	require.NotContains(t, newImageServer(a, named).refs, "registry.k8s.io/nginx:latest")

	_, err = withOverrides(images, []override{{Image: "slipway.local/gone:1", StandsFor: []string{"quay.io/gone:1"}}})
	require.ErrorContains(t, err, "the archive has no image slipway.local/gone:1, which stands for quay.io/gone:1")
	_, err = readOverrides(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = readOverrides(file)
	require.ErrorContains(t, err, file)
	none, err := readOverrides("")
	require.NoError(t, err)
	require.Empty(t, none)
}

// answers asks a handler as containerd asks a mirror.
func answers(t *testing.T, h http.Handler, method, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for name := range header {
		r.Header.Set(name, header.Get(name))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	response := w.Result()
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(b)
}

func TestTheNodesRegistryServesEveryName(t *testing.T) {
	a, own, inner, multi := twoArchives(t)
	images, err := a.images()
	require.NoError(t, err)
	images, err = withOverrides(images, []override{{Image: "slipway.local/redis:7.0", StandsFor: []string{"public.ecr.aws/docker/library/redis:8"}}})
	require.NoError(t, err)
	g := newImageServer(a, images)
	h := g.handler()
	for name, want := range g.names() {
		host, path, _ := strings.Cut(name, "/")
		of, ref, digested := strings.Cut(path, "@")
		if !digested {
			of, ref, _ = strings.Cut(path, ":")
		}
		r, _ := answers(t, h, http.MethodGet, "/v2/"+of+"/manifests/"+ref+"?ns="+host, nil)
		require.Equal(t, http.StatusOK, r.StatusCode, name)
		require.Equal(t, want.String(), r.Header.Get("Docker-Content-Digest"), name)
	}
	layer := digest.FromString("inner").String()
	for path, want := range map[string]digest.Digest{
		"/v2/redis/manifests/7.0?ns=slipway.local":                                         own.Digest,
		"/v2/docker/library/redis/manifests/8?ns=public.ecr.aws":                           own.Digest,
		"/v2/docker/library/redis/manifests/" + own.Digest.String() + "?ns=public.ecr.aws": own.Digest,
		"/v2/library/nginx/manifests/1?ns=docker.io":                                       multi.Digest,
		"/v2/library/nginx/manifests/" + multi.Digest.String() + "?ns=docker.io":           multi.Digest,
		"/v2/library/nginx/manifests/" + inner.Digest.String() + "?ns=docker.io":           inner.Digest,
		"/v2/library/nginx/blobs/" + layer + "?ns=docker.io":                               digest.Digest(layer),
	} {
		r, b := answers(t, h, http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, r.StatusCode, path)
		require.Equal(t, want, digest.FromString(b), path)
		r, b = answers(t, h, http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, r.StatusCode, path)
		require.Empty(t, b)
	}
	for _, path := range []string{
		"/v2/library/nginx/manifests/1", "/v2/library/nginx/manifests/1?ns=quay.io", "/v2/library/nginx/manifests/2?ns=docker.io",
		"/v2/library/nginx/blobs/" + layer + "?ns=quay.io", "/v2/docker/library/redis/manifests/7.0?ns=public.ecr.aws",
	} {
		r, _ := answers(t, h, http.MethodGet, path, nil)
		require.Equal(t, http.StatusNotFound, r.StatusCode, path)
	}
}

func TestWhereContainerdAsks(t *testing.T) {
	dir := t.TempDir()
	hosts := func(host string) string {
		text, err := os.ReadFile(filepath.Join(dir, host, "hosts.toml"))
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			return ""
		}
		return string(text)
	}
	require.NoError(t, writeRegistries(dir, false))
	require.Empty(t, hosts("_default"))
	require.NoError(t, writeRegistries(dir, true))
	require.Equal(t, "server = \"http://127.0.0.1:6445\"\n\n[host.\"http://127.0.0.1:6445\"]\n  capabilities = [\"pull\", \"resolve\"]\n", hosts("slipway.local"))
	require.Equal(t, "[host.\"http://127.0.0.1:6445\"]\n  capabilities = [\"pull\", \"resolve\"]\n", hosts("_default"), "no server: the registry itself is asked next")
}

// mirror is a registry that wants a token and holds its repositories below a path.
type mirror struct {
	content map[string]string // by path
	token   string            // empty: none is wanted
	asked   []string
	broken  bool
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		if r.URL.Query().Get("service") != "mirror" || r.URL.Query().Get("scope") == "" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"token":%q}`, m.token)
		return
	}
	if m.token != "" && r.Header.Get("Authorization") != "Bearer "+m.token {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="mirror",scope="repository:team/redis:pull"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/v2/" {
		return
	}
	m.asked = append(m.asked, r.URL.Path)
	if m.broken {
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	text, ok := m.content[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
}

func TestTheMirrorsImagesAreAskedForUnderTheirOwnNames(t *testing.T) {
	manifest, index := `{"mediaType":"application/vnd.docker.distribution.manifest.v2+json"}`, `{"manifests":[]}`
	own := `{"layers":[]}`
	sum := func(s string) string { return digest.FromString(s).String() }
	m := &mirror{token: "t", content: map[string]string{
		"/v2/team/redis/manifests/" + sum(own):               own,
		"/v2/team/redis/blobs/" + sum("layer"):               "layer",
		"/v2/team/quay.io-web/manifests/" + sum(manifest):    manifest,
		"/v2/team/quay.io-web/blobs/" + sum(index):           index,
		"/v2/team/quay.io-web/blobs/" + sum("web"):           "web",
		"/v2/team/redis/manifests/" + sum("lost"):            "another one",
		"/v2/team/quay.io-web/blobs/" + sum("of an own one"): "of an own one",
	}}
	server := httptest.NewServer(m)
	defer server.Close()
	f, err := newForwarder(server.URL+"/team", authn.Anonymous, []override{
		{Path: "redis", Digest: sum(own), StandsFor: []string{"public.ecr.aws/docker/library/redis:8"}},
		{Path: "redis", Digest: sum("lost"), StandsFor: []string{"quay.io/lost:1"}},
		{Path: "redis", Digest: sum("nowhere"), StandsFor: []string{"quay.io/nowhere:1"}},
		{Path: "redis", Digest: sum("other"), StandsFor: []string{"quay.io/web:9"}},
		{Path: "quay.io-web", Digest: sum(manifest), Index: sum(index), StandsFor: []string{"quay.io/web:1", "docker.io/library/web@" + sum(index)}},
	})
	require.NoError(t, err)
	h := f.handler()
	for path, want := range map[string]struct{ text, mediaType string }{
		"/v2/docker/library/redis/manifests/8?ns=public.ecr.aws":                {own, ocispec.MediaTypeImageManifest},
		"/v2/docker/library/redis/manifests/" + sum(own) + "?ns=public.ecr.aws": {own, ocispec.MediaTypeImageManifest},
		"/v2/web/manifests/1?ns=quay.io":                                        {index, ocispec.MediaTypeImageIndex},
		"/v2/web/manifests/" + sum(index) + "?ns=quay.io":                       {index, ocispec.MediaTypeImageIndex},
		"/v2/library/web/manifests/" + sum(index) + "?ns=docker.io":             {index, ocispec.MediaTypeImageIndex},
		"/v2/library/web/manifests/" + sum(manifest) + "?ns=docker.io":          {manifest, "application/vnd.docker.distribution.manifest.v2+json"},
	} {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			r, b := answers(t, h, method, path, nil)
			require.Equal(t, http.StatusOK, r.StatusCode, path)
			require.Equal(t, want.mediaType, r.Header.Get("Content-Type"), path)
			require.Equal(t, sum(want.text), r.Header.Get("Docker-Content-Digest"))
			require.EqualValues(t, len(want.text), r.ContentLength, "containerd asks for the size")
			if method == http.MethodGet {
				require.Equal(t, want.text, b)
			}
		}
	}
	require.Equal(t, sum(own), f.names()["public.ecr.aws/docker/library/redis:8"].String())
	require.Equal(t, sum(index), f.names()["quay.io/web:1"].String())
	require.Equal(t, sum(manifest), f.names()["docker.io/library/web@"+sum(manifest)].String())
	r, b := answers(t, h, http.MethodGet, "/v2/docker/library/redis/blobs/"+sum("layer")+"?ns=public.ecr.aws", http.Header{"Range": {"bytes=1-"}})
	require.Equal(t, http.StatusPartialContent, r.StatusCode, "a download that was cut goes on")
	require.Equal(t, "ayer", b)
	r, b = answers(t, h, http.MethodGet, "/v2/web/blobs/"+sum("web")+"?ns=quay.io", nil)
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Equal(t, "web", b, "whichever repository of the mirror has it")
	require.Contains(t, m.asked, "/v2/team/redis/blobs/"+sum("web"))

	before := len(m.asked)
	for path, status := range map[string]int{
		"/v2/web/manifests/2?ns=quay.io":                 http.StatusNotFound,
		"/v2/absent/blobs/" + sum("web") + "?ns=quay.io": http.StatusNotFound,
	} {
		r, _ := answers(t, h, http.MethodGet, path, nil)
		require.Equal(t, status, r.StatusCode, path)
	}
	require.Len(t, m.asked, before, "what nothing stands for is not asked of the mirror")
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		r, b = answers(t, h, method, "/v2/redis/manifests/"+sum(own)+"?ns=slipway.local", nil)
		require.Equal(t, http.StatusOK, r.StatusCode, "slipway.local's are the mirror's own")
		require.EqualValues(t, len(own), r.ContentLength)
	}
	require.Equal(t, own, b)
	r, _ = answers(t, h, http.MethodGet, "/v2/redis/blobs/"+sum("layer")+"?ns=slipway.local", http.Header{"Range": {"bytes=1-"}})
	require.Equal(t, http.StatusPartialContent, r.StatusCode)
	before = len(m.asked)
	for _, path := range []string{
		"/v2/../other/redis/manifests/" + sum(own), "/v2/%252e%252e/other/redis/manifests/" + sum(own), "/v2/redis%3fx/manifests/" + sum(own),
		"/v2/redis/manifests/../../../other/redis/manifests/" + sum(own), "/v2/redis/blobs/..%2f..%2f..%2fother%2fredis%2fblobs%2f" + sum(own),
	} {
		r, _ = answers(t, h, http.MethodGet, path+"?ns=slipway.local", nil)
		require.Equal(t, http.StatusNotFound, r.StatusCode, path)
	}
	r, _ = answers(t, h, http.MethodGet, "/v2/docker/library/redis/blobs/..%2f..%2f..%2fother?ns=public.ecr.aws", nil)
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	require.Len(t, m.asked, before, "nothing beside the mirror's path")
	r, _ = answers(t, h, http.MethodGet, "/v2/absent/manifests/"+sum(own)+"?ns=slipway.local", nil)
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	for path, status := range map[string]int{
		"/v2/nowhere/manifests/1?ns=quay.io":             http.StatusNotFound,
		"/v2/lost/manifests/1?ns=quay.io":                http.StatusBadGateway,
		"/v2/web/blobs/" + sum("absent") + "?ns=quay.io": http.StatusNotFound,
	} {
		r, b := answers(t, h, http.MethodGet, path, nil)
		require.Equal(t, status, r.StatusCode, path)
		if status == http.StatusBadGateway {
			require.Contains(t, b, "the mirror has "+sum("lost")+" as ")
		}
	}
	m.broken = true
	for _, path := range []string{"/v2/web/manifests/1?ns=quay.io", "/v2/web/blobs/" + sum("web") + "?ns=quay.io"} {
		r, b := answers(t, h, http.MethodGet, path, nil)
		require.Equal(t, http.StatusBadGateway, r.StatusCode)
		require.Contains(t, b, "500")
	}
}

func TestAMirrorThatWantsAnAccount(t *testing.T) {
	for challenge, says := range map[string]string{
		`Basic realm="x"`:                    "401 Unauthorized",
		`Bearer service="x"`:                 "missing realm",
		`Bearer realm="http://10.0.0.1:1/t"`: "private or link-local address",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		f, err := newForwarder(server.URL, authn.Anonymous, []override{{Path: "web", Digest: digest.FromString("x").String(), StandsFor: []string{"quay.io/web:1"}}})
		require.NoError(t, err)
		r, b := answers(t, f.handler(), http.MethodGet, "/v2/web/manifests/1?ns=quay.io", nil)
		require.Equal(t, http.StatusBadGateway, r.StatusCode)
		require.Contains(t, b, says)
		server.Close()
	}
}

// TestWhereTheNodeTakesImagesFrom: archives, or a mirror with other names, and no server of
// its own where neither needs one.
func TestWhereTheNodeTakesImagesFrom(t *testing.T) {
	a, own, _, _ := twoArchives(t)
	file := filepath.Join(t.TempDir(), "overrides.json")
	text, err := json.Marshal([]override{{Image: "slipway.local/redis:7.0", Path: "redis", Digest: own.Digest.String(), StandsFor: []string{"quay.io/redis:8"}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	opened := func(args ...string) (*node, error) {
		s, err := parseSettings(append(args, "--pause-image", "slipway.local/pause@x"))
		require.NoError(t, err)
		n := &node{settings: s, logLine: func(string) {}}
		err = n.openImages()
		t.Cleanup(func() {
			if n.archive != nil {
				release(n.archive)
			}
		})
		return n, err
	}
	asks := func(n *node) int {
		r, _ := answers(t, n.pulls, http.MethodGet, "/v2/redis/manifests/8?ns=quay.io", nil)
		return r.StatusCode
	}
	n, err := opened("--images", a.files[0].Name(), "--images", a.files[1].Name(), "--overrides", file)
	require.NoError(t, err)
	require.Contains(t, n.served, "docker.io/library/nginx:1")
	require.Contains(t, n.served, "quay.io/redis:8")
	require.True(t, n.OwnNames)
	require.Equal(t, http.StatusOK, asks(n))

	m := httptest.NewServer(&mirror{content: map[string]string{}})
	defer m.Close()
	n, err = opened("--registry-mirror", m.URL+"/team", "--overrides", file)
	require.NoError(t, err)
	require.True(t, n.OwnNames)
	require.Equal(t, http.StatusNotFound, asks(n), "the mirror is asked, and does not have it")
	n, err = opened("--registry-mirror", m.URL)
	require.NoError(t, err)
	require.False(t, n.OwnNames, "nothing stands for anything")

	_, err = opened("--images", a.files[0].Name(), "--images", filepath.Join(t.TempDir(), "absent.tar"))
	require.ErrorIs(t, err, fs.ErrNotExist, "an archive that is named is there")
}
