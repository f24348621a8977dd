package oci

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations of a manifest in an archive's index.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// Named is an image of an archive.
type Named struct {
	Ref   string // "slipway.local/gitea:1.26.0"
	Image v1.Image
}

// WriteArchive writes images as an OCI layout in a plain tar. Blobs that several
// images have are in it once. The bytes depend on the images alone, not on
// their order.
func WriteArchive(name string, images []Named) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write an image archive: %w", err)
	}
	if err := errors.Join(writeArchive(f, images), f.Close()); err != nil {
		return fmt.Errorf("write an image archive: %w", err)
	}
	return nil
}

func writeArchive(w io.Writer, images []Named) error {
	images = slices.SortedFunc(slices.Values(images), func(a, b Named) int { return strings.Compare(a.Ref, b.Ref) })
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	blobs := map[string]v1.Layer{}
	for _, named := range images {
		manifest, err := collect(named, blobs)
		if err != nil {
			return fmt.Errorf("%s: %w", named.Ref, err)
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	indexJSON, err := json.Marshal(index)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: time.Unix(Epoch, 0)}); err != nil {
			return err
		}
	}
	for _, hex := range slices.Sorted(maps.Keys(blobs)) {
		if err := add(out, "blobs/sha256/"+hex, blobs[hex]); err != nil {
			return err
		}
	}
	if err := add(out, "index.json", static.NewLayer(indexJSON, index.MediaType)); err != nil {
		return err
	}
	if err := add(out, "oci-layout", static.NewLayer([]byte(`{"imageLayoutVersion":"1.0.0"}`), "")); err != nil {
		return err
	}
	return out.Close()
}

// collect puts the blobs of an image into blobs, by their digests, and describes
// its manifest.
func collect(named Named, blobs map[string]v1.Layer) (v1.Descriptor, error) {
	layers, err := named.Image.Layers()
	config, configErr := partial.ConfigLayer(named.Image)
	manifest, manifestErr := named.Image.RawManifest()
	digest, digestErr := named.Image.Digest()
	file, fileErr := named.Image.ConfigFile()
	if err := errors.Join(err, configErr, manifestErr, digestErr, fileErr); err != nil {
		return v1.Descriptor{}, err
	}
	for _, blob := range append(layers, config, static.NewLayer(manifest, types.OCIManifestSchema1)) {
		hash, err := blob.Digest()
		if err != nil {
			return v1.Descriptor{}, err
		}
		blobs[hash.Hex] = blob
	}
	_, tag, _ := strings.Cut(named.Ref[strings.LastIndexByte(named.Ref, '/')+1:], ":")
	return v1.Descriptor{
		MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(manifest)),
		Annotations: map[string]string{annotationName: named.Ref, annotationTag: tag},
		Platform:    &v1.Platform{OS: "linux", Architecture: file.Architecture},
	}, nil
}

func add(out *tar.Writer, name string, blob v1.Layer) error {
	size, err := blob.Size()
	if err != nil {
		return err
	}
	r, err := blob.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return copyInto(out, &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(Epoch, 0)}, r)
}
