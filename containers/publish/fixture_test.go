package publish

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/containers/trust"
)

// fixture is a bundle with an image of each kind and the lock that it fits.
type fixture struct {
	dir   string
	lock  *lock.Lock
	files map[string][]byte // by path
}

// wanted takes any bundle.
func wanted() trust.Anchor { return trust.Anchor{Digest: trust.Unverified} }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), files: map[string][]byte{
		"bin/slipway": []byte("#!/bin/slipway"), "bin/helm": []byte("#!/bin/helm"), "manifests/argocd/install.yaml": []byte("kind: List\n"),
	}}
	module := lock.Module{Path: "example.com/argo", Version: "v1.0.0", Sum: "h1:klbUb5LOK+oJSBkR0OYGlLkG9IpsPVtSR2idOdaQb2I="}
	f.lock = &lock.Lock{Version: lock.Format, Suite: "bookworm"}
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for file, names := range map[string][]string{"toolchain": {"toolchain"}, "node": {"node"}, "workloads": {"gitea", "redis"}} {
		images := map[string]v1.Image{}
		for _, n := range names {
			image, err := random.Image(2000, 2)
			require.NoError(t, err)
			image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
			digest, err := image.Digest()
			require.NoError(t, err)
			ref := bundle.Host + "/" + n + ":1"
			images[ref] = image
			index.Images = append(index.Images, bundle.Image{Name: n, Ref: ref, Digest: digest.String()})
			f.lock.Images = append(f.lock.Images, lock.Image{Name: n, Version: "1", Source: n, Workload: file == "workloads"})
		}
		f.files["images/"+file+".tar"] = ociArchive(t, images)
	}
	for path, content := range f.files {
		sha := sha256.Sum256(content)
		file := bundle.File{Path: path, Name: strings.TrimSuffix(filepath.Base(path), ".tar"), Kind: bundle.Images, Version: "1", Origin: "images", SHA256: hex.EncodeToString(sha[:]), Size: int64(len(content))}
		switch strings.Split(path, "/")[0] {
		case "bin":
			file.Kind = bundle.Tool
		case "manifests":
			file.Kind, file.Name, file.Origin = bundle.Manifest, "argocd", module.Origin()+"#install.yaml"
			f.lock.Manifests = []lock.Manifest{{Name: "argocd", Version: "1", Modules: []lock.Module{module}, Files: map[string]string{"install.yaml": file.SHA256}}}
		}
		index.Files = append(index.Files, file)
		f.write(t, path, content)
	}
	text, err := index.Marshal()
	require.NoError(t, err)
	f.write(t, bundle.IndexFile, text)
	return f
}

func (f *fixture) write(t *testing.T, path string, content []byte) {
	t.Helper()
	path = filepath.Join(f.dir, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o755))
}

func ociArchive(t *testing.T, images map[string]v1.Image) []byte {
	t.Helper()
	var b strings.Builder
	w := tar.NewWriter(&b)
	add := func(name string, content []byte) {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}))
		_, err := w.Write(content)
		require.NoError(t, err)
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for ref, image := range images {
		manifest, err := image.RawManifest()
		require.NoError(t, err)
		config, err := image.RawConfigFile()
		require.NoError(t, err)
		digest, err := image.Digest()
		require.NoError(t, err)
		name, err := image.ConfigName()
		require.NoError(t, err)
		add(ociarchive.BlobPath(digest), manifest)
		add(ociarchive.BlobPath(name), config)
		layers, err := image.Layers()
		require.NoError(t, err)
		for _, l := range layers {
			h, err := l.Digest()
			require.NoError(t, err)
			r, err := l.Compressed()
			require.NoError(t, err)
			content, err := io.ReadAll(r)
			require.NoError(t, err)
			add(ociarchive.BlobPath(h), content)
		}
		index.Manifests = append(index.Manifests, v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(manifest)), Annotations: map[string]string{ociarchive.AnnotationName: ref},
		})
	}
	text, err := json.Marshal(index)
	require.NoError(t, err)
	add("index.json", text)
	require.NoError(t, w.Close())
	return []byte(b.String())
}

// server is a registry; before may answer in its place by returning true.
func server(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) (place string, uploads *atomic.Int32) {
	t.Helper()
	uploads = &atomic.Int32{}
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		if r.Method == http.MethodPut {
			uploads.Add(1)
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://") + "/team/slipway", uploads
}

func mustRef(t *testing.T, s string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(s)
	require.NoError(t, err)
	return ref
}

// account is a keychain with one account, whatever registry asks.
type account struct{ user, password string }

func (a account) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: a.user, Password: a.password}, nil
}
