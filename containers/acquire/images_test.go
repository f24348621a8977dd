package acquire

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	imagelayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

const syscallENOSPC = syscall.ENOSPC

// server is a registry; before may answer in its place by returning true.
func server(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// elsewhere sends all requests to a test server, whatever host they name, and refuses TLS
// as that server does.
type elsewhere struct{ host string }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return nil, http.ErrSchemeMismatch
	}
	r = r.Clone(r.Context())
	r.URL.Host = e.host
	return http.DefaultTransport.RoundTrip(r)
}

// platform is an image for a platform.
func platform(t *testing.T, system, arch string) v1.Image {
	t.Helper()
	image, err := random.Image(3000, 2)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = system, arch
	image, err = mutate.ConfigFile(image, config)
	require.NoError(t, err)
	return image
}

// only is an index of one image.
func only(t *testing.T, images ...v1.Image) v1.ImageIndex {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, i := range images {
		config, err := i.ConfigFile()
		require.NoError(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture},
		}})
	}
	return index
}

// multi is an index of several platforms and its image for linux/amd64.
func multi(t *testing.T) (v1.ImageIndex, v1.Image) {
	t.Helper()
	amd64 := platform(t, "linux", "amd64")
	return only(t, platform(t, "linux", "arm64"), platform(t, "unknown", "unknown"), amd64), amd64
}

// sameLayers compares the uncompressed layers and the configs of two images.
func sameLayers(a, b v1.Image) error {
	all := make([]string, 2)
	for n, i := range []v1.Image{a, b} {
		config, err := i.RawConfigFile()
		if err != nil {
			return err
		}
		layers, err := i.Layers()
		if err != nil {
			return err
		}
		all[n] = string(config)
		for _, l := range layers {
			r, err := l.Uncompressed()
			if err != nil {
				return err
			}
			h, _, err := v1.SHA256(r)
			if err := errors.Join(err, r.Close()); err != nil {
				return err
			}
			all[n] += h.String()
		}
	}
	if all[0] != all[1] {
		return errors.New("the images differ")
	}
	return nil
}

// layoutOf writes an OCI layout with images by name; an empty name is none.
func layoutOf(t *testing.T, images map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	path, err := imagelayout.Write(dir, empty.Index)
	require.NoError(t, err)
	for name, what := range images {
		var options []imagelayout.Option
		if name != "" {
			options = append(options, imagelayout.WithAnnotations(map[string]string{annotationRef: name}))
		}
		switch what := what.(type) {
		case v1.Image:
			err = path.AppendImage(what, options...)
		case v1.ImageIndex:
			err = path.AppendIndex(what, options...)
		}
		require.NoError(t, err)
	}
	return dir
}

// tarOf packs a directory.
func tarOf(t *testing.T, dir, prefix string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range content(t, dir) {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: prefix + name, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// saved writes an archive as docker save did before it wrote OCI layouts: layers are plain
// tars in directories of their own, and one may be a link.
func savedOf(t *testing.T, image v1.Image, tags ...string) string {
	t.Helper()
	dir := t.TempDir()
	config, err := image.RawConfigFile()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
	layers, err := image.Layers()
	require.NoError(t, err)
	entry := savedImage{Config: "config.json", RepoTags: tags}
	for n, l := range layers {
		name := fmt.Sprintf("%d/layer.tar", n)
		r, err := l.Uncompressed()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		entry.Layers = append(entry.Layers, name)
	}
	text, err := json.Marshal([]savedImage{entry})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, dockerFile), text, 0o600))
	return tarOf(t, dir, "")
}

func TestFromLayoutsAndArchives(t *testing.T) {
	index, amd64 := multi(t)
	digest, err := index.Digest()
	require.NoError(t, err)
	other := platform(t, "linux", "amd64")
	tag, err := name.NewTag("docker.io/library/web:1")
	require.NoError(t, err)
	crane := filepath.Join(t.TempDir(), "crane.tar")
	require.NoError(t, tarball.WriteToFile(crane, tag, amd64))
	for what, c := range map[string]struct {
		from  string // and :NAME
		index string
	}{
		"a layout of one image":            {layoutOf(t, map[string]any{"": index}), digest.String()},
		"a layout with tags":               {layoutOf(t, map[string]any{"1": index, "2": other}), digest.String()},
		"a layout with references":         {layoutOf(t, map[string]any{"docker.io/library/web:1": amd64, "docker.io/library/else:1": other}), ""},
		"an archive of a layout":           {tarOf(t, layoutOf(t, map[string]any{"web:1": index, "2": other}), "./"), digest.String()},
		"docker save":                      {savedOf(t, amd64, "web:1"), ""},
		"docker save without a tag":        {savedOf(t, amd64), ""},
		"docker save of another, by name":  {savedOf(t, amd64, "elsewhere/web:9") + ":docker.io/elsewhere/web:9", ""},
		"docker save, layers compressed":   {crane, ""},
		"a layout with other tags, by tag": {layoutOf(t, map[string]any{"v9": amd64, "v8": other}) + ":v9", ""},
		"a layout, by digest":              {layoutOf(t, map[string]any{"v9": index, "v8": other}) + ":" + digest.String(), digest.String()},
	} {
		t.Run(what, func(t *testing.T) {
			dir := newBundle(t)
			_, err := add(t, Options{Dir: dir}, "web:1="+c.from)
			require.NoError(t, err)
			i, image := imageOf(t, dir, "docker.io/library/web:1")
			require.Equal(t, c.index, i.Index)
			require.NoError(t, sameLayers(image, amd64))
			before := content(t, dir)
			finished, err := add(t, Options{Dir: dir}, "web:1="+c.from)
			require.NoError(t, err)
			require.True(t, finished[0].There)
			require.Equal(t, before, content(t, dir))
			require.NotContains(t, before[bundle.IndexFile], filepath.Dir(c.from), "no path of this machine is in the bundle")
		})
	}
}

// TestFromAnotherBundle: as the remedy of a damaged bundle to which images were added says.
func TestFromAnotherBundle(t *testing.T) {
	index, amd64 := multi(t)
	for what, image := range map[string]any{"an index": index, "an image": amd64} {
		t.Run(what, func(t *testing.T) {
			old, dir := newBundle(t), newBundle(t)
			_, err := add(t, Options{Dir: old}, "web:1="+layoutOf(t, map[string]any{"": image}))
			require.NoError(t, err)
			have, _ := imageOf(t, old, "docker.io/library/web:1")
			digest := strings.TrimSuffix(filepath.Base(have.Archive), ".tar")
			_, err = add(t, Options{Dir: dir}, "web:1="+filepath.Join(old, have.Archive)+":sha256:"+digest)
			require.NoError(t, err)
			i, _ := imageOf(t, dir, "docker.io/library/web:1")
			require.Equal(t, have, i)
		})
	}
}

// TestNamesOfALayout: newer archives of docker save have the whole reference and the tag.
func TestNamesOfALayout(t *testing.T) {
	ref, err := imageref.Parse("quay.io/team/web:1")
	require.NoError(t, err)
	named := func(whole, tag string) v1.Descriptor {
		return v1.Descriptor{Annotations: map[string]string{ociarchive.AnnotationName: whole, annotationRef: tag}}
	}
	w := wanted{ref: ref}
	require.True(t, isNamed(named("quay.io/team/web:1", "1"), w))
	require.True(t, isNamed(named("", "1"), w), "which repository it is of nobody says")
	require.True(t, isNamed(named("", "quay.io/team/web:1"), w))
	require.False(t, isNamed(named("docker.io/library/other:1", "1"), w), "only the tag is the same")
	require.True(t, isNamed(named("docker.io/library/other:1", "1"), wanted{ref: ref, name: "other:1"}))
	require.Equal(t, []string{"docker.io/library/other:1"}, names([]v1.Descriptor{named("docker.io/library/other:1", "1")}))
}

func TestSourcesThatAreDamaged(t *testing.T) {
	amd64 := platform(t, "linux", "amd64")
	layers, err := amd64.Layers()
	require.NoError(t, err)
	hash, err := layers[1].Digest()
	require.NoError(t, err)
	manifest, err := amd64.Digest()
	require.NoError(t, err)
	change := func(do func(dir string)) string {
		dir := layoutOf(t, map[string]any{"1": amd64})
		do(dir)
		return dir
	}
	blob := func(dir string, h v1.Hash) string { return filepath.Join(dir, ociarchive.BlobPath(h)) }
	tamper := func(dir string, h v1.Hash) {
		text, err := os.ReadFile(blob(dir, h))
		require.NoError(t, err)
		text[len(text)-1] ^= 1
		require.NoError(t, os.WriteFile(blob(dir, h), text, 0o600))
	}
	for what, c := range map[string]struct {
		from, says string
		code       fault.Code
	}{
		"a layer":              {change(func(dir string) { tamper(dir, hash) }), hash.String() + ": its digest is", CodeSource},
		"a manifest":           {change(func(dir string) { tamper(dir, manifest) }), manifest.String() + ": its digest is", CodeSource},
		"a layer that is cut":  {change(func(dir string) { require.NoError(t, os.Truncate(blob(dir, hash), 10)) }), "it has 10 bytes in place of", CodeSource},
		"a layer that is gone": {change(func(dir string) { require.NoError(t, os.Remove(blob(dir, hash))) }), hash.Hex, CodeSource},
		"no such tag":          {layoutOf(t, map[string]any{"2": amd64, "3": platform(t, "linux", "amd64")}), "it has 2, 3", CodeAbsent},
		"only another tag":     {layoutOf(t, map[string]any{"2": amd64}), "it has 2", CodeAbsent},
		"another image":        {layoutOf(t, map[string]any{"elsewhere/web:1": amd64}), "it has elsewhere/web:1", CodeAbsent},
		"another one, saved":   {savedOf(t, amd64, "elsewhere/web:1"), "it has elsewhere/web:1", CodeAbsent},
		"no such name":         {savedOf(t, amd64, "web:1") + ":web:2", "it has web:1", CodeAbsent},
		"another platform":     {layoutOf(t, map[string]any{"1": platform(t, "linux", "arm64")}), "it is for linux/arm64", CodeAbsent},
	} {
		t.Run(what, func(t *testing.T) {
			dir := newBundle(t)
			before := content(t, dir)
			_, err := add(t, Options{Dir: dir}, "web:1="+c.from)
			require.ErrorIs(t, err, &fault.Fault{Code: c.code}, "%v", err)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, content(t, dir))
			require.NotErrorIs(t, err, fs.ErrClosed)
		})
	}
}
