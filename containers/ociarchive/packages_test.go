package ociarchive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/fault"
)

const (
	lower = "Package: adduser\nStatus: install ok installed\nVersion: 3.134\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
	upper = lower + "\nPackage: git\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.39.5-0+deb12u3\nDescription: fast\n Version: none\n"
)

// image has a layer for each map of files.
func image(t *testing.T, layers ...map[string]string) v1.Image {
	t.Helper()
	out := empty.Image
	for _, files := range layers {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for name, text := range files {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
			_, err := w.Write([]byte(text))
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
		require.NoError(t, err)
		out, err = mutate.AppendLayers(out, layer)
		require.NoError(t, err)
	}
	return out
}

// made is a bundle with these images among its workloads.
func made(t *testing.T, images map[string]v1.Image) *bundle.Bundle {
	t.Helper()
	dir, oci := t.TempDir(), t.TempDir()
	path, err := layout.Write(oci, empty.Index)
	require.NoError(t, err)
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64", Files: []bundle.File{{
		Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, SHA256: strings.Repeat("a", 64),
	}}}
	for name, i := range images {
		ref := bundle.Host + "/" + name + ":1"
		require.NoError(t, path.AppendImage(i, layout.WithAnnotations(map[string]string{ociarchive.AnnotationName: ref})))
		digest, err := i.Digest()
		require.NoError(t, err)
		index.Images = append(index.Images, bundle.Image{Name: name, Ref: ref, Digest: digest.String()})
	}
	text, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "images"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	archive, err := os.Create(filepath.Join(dir, bundle.WorkloadArchive))
	require.NoError(t, err)
	w := tar.NewWriter(archive)
	require.NoError(t, w.AddFS(os.DirFS(oci)))
	require.NoError(t, w.Close())
	require.NoError(t, archive.Close())
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	return b
}

func TestPackagesAreThoseOfTheHighestLayer(t *testing.T) {
	base := map[string]string{"./var/lib/dpkg/status": lower, "./etc/hosts": ""}
	b := made(t, map[string]v1.Image{
		"git":   image(t, base, map[string]string{"var/lib/dpkg/status": upper}, map[string]string{"usr/bin/x": "x"}),
		"small": image(t, base),
		"pause": image(t, map[string]string{"pause": "p"}),
	})
	got, err := ociarchive.Packages(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, map[string]map[string]string{
		"git":   {"adduser": "3.134", "git": "1:2.39.5-0+deb12u3"},
		"small": {"adduser": "3.134"},
	}, got)
}

// Whoever changes an archive can change its sha256 in the index, too.
func TestAForgedArchiveIsNamed(t *testing.T) {
	b := made(t, map[string]v1.Image{
		"git":   image(t, map[string]string{"var/lib/dpkg/status": lower}),
		"other": image(t, map[string]string{"a": "b"}),
	})
	archive := b.Path(bundle.WorkloadArchive)
	text, err := os.ReadFile(archive)
	require.NoError(t, err)
	open, err := ociarchive.Open(archive)
	require.NoError(t, err)
	at := 0
	for _, i := range b.Index.Images {
		if i.Name == "git" {
			image, err := open.Image(i.Ref, i.Digest)
			require.NoError(t, err)
			layers, err := image.Layers()
			require.NoError(t, err)
			packed, err := layers[0].Compressed()
			require.NoError(t, err)
			bytesOf, err := io.ReadAll(packed)
			require.NoError(t, err)
			at = bytes.Index(text, bytesOf)
		}
	}
	require.NoError(t, open.Close())
	require.Positive(t, at)
	text[at+9] ^= 1 // in the header of gzip, which unpacks as before
	require.NoError(t, os.WriteFile(archive, text, 0o644))
	_, err = ociarchive.Packages(t.Context(), b)
	require.ErrorIs(t, err, &fault.Fault{Code: ociarchive.CodeImages})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "image git: the content of sha256:")
	require.NotContains(t, err.Error(), "image other")

	require.NoError(t, os.Remove(archive))
	_, err = ociarchive.Packages(t.Context(), b)
	require.ErrorIs(t, err, &fault.Fault{Code: ociarchive.CodeImages})
	require.ErrorIs(t, err, fs.ErrNotExist)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ociarchive.Packages(ctx, b)
	require.ErrorIs(t, err, context.Canceled)
}
