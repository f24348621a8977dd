package oci

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// headers reads the tar stream of a layer.
func headers(t *testing.T, l v1.Layer) map[string]*tar.Header {
	t.Helper()
	r, err := l.Uncompressed()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	found := map[string]*tar.Header{}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		require.NotContains(t, found, h.Name)
		require.Empty(t, h.Uname+h.Gname)
		require.LessOrEqual(t, h.ModTime.Unix(), Epoch)
		found[h.Name] = h
	}
}

// digests are that of a layer as it is stored and that of its tar stream.
func digests(t *testing.T, l v1.Layer) [2]v1.Hash {
	t.Helper()
	digest, err := l.Digest()
	require.NoError(t, err)
	diff, err := l.DiffID()
	require.NoError(t, err)
	return [2]v1.Hash{digest, diff}
}

func sample(t *testing.T, touched time.Time) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "usr/bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "usr/bin/git"), []byte("#!/bin/sh\n"), 0o755))
	require.NoError(t, os.Link(filepath.Join(dir, "usr/bin/git"), filepath.Join(dir, "usr/bin/git-upload")))
	require.NoError(t, os.Symlink("git", filepath.Join(dir, "usr/bin/g")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "usr/share/doc/git"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(dir, "usr/share"), 0o1777|os.ModeSticky))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "usr/share/doc/git/README"), []byte("long"), 0o644))
	for _, name := range []string{"usr/bin/git", "usr/share/doc/git/README", "usr/bin", "usr", "usr/share", "usr/share/doc"} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), touched, touched))
	}
	return dir
}

func TestALayerDependsOnContentAlone(t *testing.T) {
	skip := func(path string) bool { return path == "usr/share/doc" }
	files := []File{
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root")},
		{Path: "usr/bin/g", Mode: 0o755, Data: []byte("replaced")},
	}
	a, err := WriteLayer(t.Context(), t.TempDir(), []Tree{{Root: sample(t, time.Now()), Skip: skip}}, files)
	require.NoError(t, err)
	b, err := WriteLayer(t.Context(), t.TempDir(), []Tree{{Root: sample(t, time.Now().Add(time.Hour)), Skip: skip}}, files)
	require.NoError(t, err)
	require.Equal(t, digests(t, a), digests(t, b))

	got := headers(t, a)
	require.NotContains(t, got, "usr/share/doc/")
	require.EqualValues(t, 0o1777, got["usr/share/"].Mode)
	require.Equal(t, byte(tar.TypeReg), got["usr/bin/git"].Typeflag)
	require.Equal(t, byte(tar.TypeLink), got["usr/bin/git-upload"].Typeflag)
	require.Equal(t, "usr/bin/git", got["usr/bin/git-upload"].Linkname)
	require.EqualValues(t, len("replaced"), got["usr/bin/g"].Size)

	old, err := WriteLayer(t.Context(), t.TempDir(), []Tree{{Root: sample(t, time.Unix(1e9, 5)), Skip: skip}}, files)
	require.NoError(t, err)
	require.Equal(t, time.Unix(1e9, 0), headers(t, old)["usr/bin/git"].ModTime)
	require.NotEqual(t, digests(t, a)[1], digests(t, old)[1])
}

func open(t *testing.T, opener func() (io.ReadCloser, error)) io.Reader {
	t.Helper()
	r, err := opener()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestALayerIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	wrote, err := WriteLayer(t.Context(), dir, nil, []File{{Path: "a", Mode: 0o644, Data: []byte("a")}})
	require.NoError(t, err)
	read, err := OpenLayer(dir)
	require.NoError(t, err)
	require.Equal(t, wrote, read)
	isRead(t, read)
	media, err := read.MediaType()
	require.NoError(t, err)
	require.Equal(t, types.OCILayerZStd, media)
}

func TestAPlainLayerIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plain.tar")
	wrote, err := WritePlain(t.Context(), path, nil, []File{{Path: "a", Mode: 0o644, Data: []byte("a")}})
	require.NoError(t, err)
	read, err := OpenPlain(path)
	require.NoError(t, err)
	require.Equal(t, wrote, read)
	isRead(t, read)
	media, err := read.MediaType()
	require.NoError(t, err)
	require.Equal(t, types.OCIUncompressedLayer, media)
}

// isRead compares what a layer says of its bytes with what they are.
func isRead(t *testing.T, l v1.Layer) {
	t.Helper()
	digest, size, err := v1.SHA256(open(t, l.Compressed))
	require.NoError(t, err)
	diff, _, err := v1.SHA256(open(t, l.Uncompressed))
	require.NoError(t, err)
	require.Equal(t, digests(t, l), [2]v1.Hash{digest, diff})
	said, err := l.Size()
	require.NoError(t, err)
	require.Equal(t, size, said)
}

func TestOverlayUpperBecomesALayer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("device nodes and trusted attributes need root")
	}
	upper := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(upper, "etc/apt"), 0o755))
	require.NoError(t, unix.Mknod(filepath.Join(upper, "etc/motd"), unix.S_IFCHR|0o600, 0))
	require.NoError(t, unix.Mknod(filepath.Join(upper, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	err := unix.Setxattr(filepath.Join(upper, "etc/apt"), "trusted.overlay.opaque", []byte("y"), 0)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) {
		t.Skip("this file system has no trusted attributes")
	}
	require.NoError(t, err)
	l, err := WriteLayer(t.Context(), t.TempDir(), []Tree{{Root: upper, Overlay: true}}, nil)
	require.NoError(t, err)
	got := headers(t, l)
	require.Equal(t, byte(tar.TypeReg), got["etc/.wh.motd"].Typeflag)
	require.NotContains(t, got, "etc/motd")
	require.Equal(t, byte(tar.TypeReg), got["etc/apt/.wh..wh..opq"].Typeflag)
	require.Equal(t, byte(tar.TypeChar), got["null"].Typeflag)
	require.EqualValues(t, 1, got["null"].Devmajor)
	require.EqualValues(t, 3, got["null"].Devminor)
}

func TestWrongEntries(t *testing.T) {
	for _, f := range []File{
		{Path: "../x", Data: []byte{}}, {Path: "", Dir: true}, {Path: "x"},
	} {
		_, err := WriteLayer(t.Context(), t.TempDir(), nil, []File{f})
		require.Error(t, err, f.Path)
	}
}

func TestAnArchiveIsAnOCILayoutAndRepeatable(t *testing.T) {
	base, err := WriteLayer(t.Context(), t.TempDir(), nil, []File{{Path: "base", Mode: 0o644, Data: []byte("shared")}})
	require.NoError(t, err)
	top, err := WriteLayer(t.Context(), t.TempDir(), nil, []File{{Path: "top", Mode: 0o755, Data: []byte("own")}})
	require.NoError(t, err)
	config := Config{Arch: "amd64", Entrypoint: []string{"/top"}, Env: map[string]string{"B": "2", "A": "1"}, User: "999"}
	one, err := NewImage(config, base)
	require.NoError(t, err)
	two, err := NewImage(config, base, top)
	require.NoError(t, err)
	images := []Named{{"slipway.local/one:1.0", one}, {"slipway.local/two:2.0", two}}

	dir := t.TempDir()
	require.NoError(t, WriteArchive(filepath.Join(dir, "a.tar"), images))
	require.NoError(t, WriteArchive(filepath.Join(dir, "b.tar"), []Named{images[1], images[0]}))
	a, err := os.ReadFile(filepath.Join(dir, "a.tar"))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "b.tar"))
	require.NoError(t, err)
	require.Equal(t, a, b)

	unpacked := filepath.Join(dir, "layout")
	untar(t, filepath.Join(dir, "a.tar"), unpacked)
	index, err := layout.ImageIndexFromPath(unpacked)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 2)
	require.Equal(t, "slipway.local/two:2.0", manifest.Manifests[1].Annotations["io.containerd.image.name"])
	require.Equal(t, "2.0", manifest.Manifests[1].Annotations["org.opencontainers.image.ref.name"])
	blobs, err := os.ReadDir(filepath.Join(unpacked, "blobs/sha256"))
	require.NoError(t, err)
	require.Len(t, blobs, 2+2+2) // layers, configs, manifests
	for _, b := range blobs {
		f, err := os.Open(filepath.Join(unpacked, "blobs/sha256", b.Name()))
		require.NoError(t, err)
		digest, _, err := v1.SHA256(f)
		require.NoError(t, errors.Join(err, f.Close()))
		require.Equal(t, b.Name(), digest.Hex)
	}

	var file v1.ConfigFile
	raw, err := two.RawConfigFile()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Equal(t, []string{"A=1", "B=2"}, file.Config.Env)
	require.Equal(t, Epoch, file.Created.Unix())
}

func untar(t *testing.T, archive, into string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	in := tar.NewReader(f)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		name := filepath.Join(into, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(name, 0o755))
			continue
		}
		content, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, content, 0o644))
	}
}
