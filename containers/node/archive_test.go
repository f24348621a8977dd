package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// layout builds an OCI archive in memory.
type layout struct {
	blobs map[digest.Digest][]byte
	index ocispec.Index
}

func (l *layout) put(mediaType string, v any) ocispec.Descriptor {
	b, ok := v.([]byte)
	if !ok {
		b, _ = json.Marshal(v)
	}
	d := digest.FromBytes(b)
	l.blobs[d] = b
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(b))}
}

func (l *layout) image(layer string) ocispec.Descriptor {
	content := l.put(ocispec.MediaTypeImageLayer, []byte(layer))
	config := l.put(ocispec.MediaTypeImageConfig, ocispec.Image{RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{content.Digest}}})
	return l.put(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{content},
	})
}

func (l *layout) add(name string, d ocispec.Descriptor) {
	d.Annotations = map[string]string{imageName: name}
	l.index.Manifests = append(l.index.Manifests, d)
}

func (l *layout) write(t *testing.T) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	file := func(name string, content []byte) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := w.Write(content)
		require.NoError(t, err)
	}
	file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	for d, content := range l.blobs {
		file("blobs/sha256/"+d.Encoded(), content)
	}
	index, err := json.Marshal(l.index)
	require.NoError(t, err)
	file("./index.json", index)
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "images.tar")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

func TestArchive(t *testing.T) {
	l := &layout{blobs: map[digest.Digest][]byte{}}
	pause, gitea := l.image("pause"), l.image("gitea")
	l.add("slipway.local/pause:1.0", pause)
	foreign := ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("not in this archive"), Size: 1,
		Platform: &ocispec.Platform{OS: "linux", Architecture: "none"},
	}
	gitea.Platform = &ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	multi := l.put(ocispec.MediaTypeImageIndex, ocispec.Index{Manifests: []ocispec.Descriptor{foreign, gitea}})
	l.add("slipway.local/gitea:1.26.0", multi)

	a, err := openArchive(l.write(t))
	require.NoError(t, err)
	defer release(a)
	images, err := a.images()
	require.NoError(t, err)
	require.Len(t, images, 2)
	require.Len(t, images[0].chain, 2)
	require.Equal(t, multi.Digest, images[0].chain[0].Digest)
	require.Equal(t, gitea.Digest, images[0].chain[1].Digest, "the manifest for this machine")

	for d, want := range l.blobs {
		r, ok := a.blob(d)
		require.True(t, ok)
		got := make([]byte, r.Size())
		_, err := r.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestTheImageForThisMachine(t *testing.T) {
	l := &layout{blobs: map[digest.Digest][]byte{}}
	silent, right := l.image("silent"), l.image("right")
	right.Platform = &ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	index := func(manifests ...ocispec.Descriptor) ocispec.Descriptor {
		return l.put(ocispec.MediaTypeImageIndex, ocispec.Index{Manifests: manifests})
	}
	l.add("slipway.local/a:1", index(silent, right))
	l.add("slipway.local/b:1", index(silent))
	a, err := openArchive(l.write(t))
	require.NoError(t, err)
	defer release(a)
	images, err := a.images()
	require.NoError(t, err)
	require.Equal(t, right.Digest, images[0].chain[1].Digest, "not the one that does not say what it is for")
	require.Equal(t, silent.Digest, images[1].chain[1].Digest, "which will do where there is no other")

	l.add("slipway.local/c:1", index(silent, l.image("another")))
	a, err = openArchive(l.write(t))
	require.NoError(t, err)
	defer release(a)
	_, err = a.images()
	require.ErrorContains(t, err, "image slipway.local/c:1 of the archive: nothing for linux/"+runtime.GOARCH)
}

func TestDamagedArchives(t *testing.T) {
	_, err := openArchive(filepath.Join(t.TempDir(), "absent.tar"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	l := &layout{blobs: map[digest.Digest][]byte{}}
	d := l.image("x")
	l.add("slipway.local/x:1", d)
	l.blobs[d.Digest] = append(l.blobs[d.Digest], ' ')
	a, err := openArchive(l.write(t))
	require.NoError(t, err)
	defer release(a)
	_, err = a.images()
	require.ErrorContains(t, err, "image slipway.local/x:1 of the archive: blob "+d.Digest.String()+" is damaged")
}

func TestRepository(t *testing.T) {
	for ref, want := range map[string]string{
		"slipway.local/gitea:1.26.0":    "slipway.local/gitea",
		"slipway.local/gitea":           "slipway.local/gitea",
		"registry:5000/a/b":             "registry:5000/a/b",
		"registry:5000/a/b:1@sha256:00": "registry:5000/a/b",
	} {
		require.Equal(t, want, repository(ref))
	}
}
