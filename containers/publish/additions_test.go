package publish

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/acquire"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/registries"
)

// add puts an image of several platforms into the fixture's bundle, and one of only one.
func (f *fixture) add(t *testing.T) (index v1.ImageIndex, image v1.Image) {
	t.Helper()
	of := func(arch string) v1.Image {
		image, err := random.Image(500, 1)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", arch
		image, err = mutate.ConfigFile(image, config)
		require.NoError(t, err)
		return image
	}
	image, index = of("amd64"), empty.Index
	for arch, i := range map[string]v1.Image{"amd64": image, "arm64": of("arm64")} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	dir := filepath.Join(t.TempDir(), "layout")
	path, err := layout.Write(dir, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "1"})))
	require.NoError(t, path.AppendImage(of("amd64"), layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "2"})))
	options := acquire.Options{Dir: f.dir}
	for _, text := range []string{"quay.io/team/web:1=" + dir, "registry.k8s.io/web:1=" + dir, "quay.io/team/web:2=" + dir} {
		r, err := acquire.ParseRequest(text)
		require.NoError(t, err)
		options.Images = append(options.Images, r)
	}
	require.NoError(t, acquire.Add(t.Context(), options))
	return index, image
}

// TestWhatWasAddedIsPushed: the lock says where each is, and the registry has the index of
// several platforms as a blob beside the image.
func TestWhatWasAddedIsPushed(t *testing.T) {
	f := newFixture(t)
	index, image := f.add(t)
	top, err := index.Digest()
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	to, uploads := server(t, nil)
	var there []string
	push := func() *lock.File {
		l, err := Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock, Observe: func(p registries.Progress) {
			require.Equal(t, 8, p.Of)
			if p.There {
				there = append(there, p.Image)
			}
		}})
		require.NoError(t, err)
		return l
	}
	l := push()
	before := uploads.Load()
	require.Equal(t, l, push())
	require.Equal(t, before, uploads.Load(), "the second push uploads nothing")
	require.Subset(t, there, []string{"quay.io/team/web:1", "index of quay.io/team/web:1", "quay.io/team/web:2", "gitea"})

	var added []bundle.Image
	for _, i := range l.Bundles["linux/amd64"].Index.Images {
		if i.Added() {
			added = append(added, i)
		}
	}
	require.Len(t, added, 2, "one image stands for two references")
	require.Equal(t, []string{"quay.io/team/web:1", "registry.k8s.io/web:1"}, added[0].StandsFor)
	require.Equal(t, digest.String(), added[0].Digest, "byte for byte")
	require.Equal(t, top.String(), added[0].Index)
	for _, i := range added {
		require.Equal(t, "quay.io-team-web", i.Repository(), "one repository for what was one")
		got, err := remote.Image(mustRef(t, to+"/"+i.Repository()+"@"+i.Digest))
		require.NoError(t, err)
		layers, err := got.Layers()
		require.NoError(t, err)
		_, err = layers[0].Size()
		require.NoError(t, err)
	}
	blob, err := name.NewDigest(to + "/quay.io-team-web@" + top.String())
	require.NoError(t, err)
	layer, err := remote.Layer(blob)
	require.NoError(t, err)
	r, err := layer.Compressed()
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	want, err := index.RawManifest()
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))

	text, err = l.Marshal()
	require.NoError(t, err)
	again, err := lock.ParseFile(text)
	require.NoError(t, err)
	require.Equal(t, l, again)
}
