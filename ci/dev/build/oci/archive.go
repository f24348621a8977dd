package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
	defer func() { _ = f.Close() }()
	if err := writeArchive(f, images); err != nil {
		return fmt.Errorf("write an image archive: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write an image archive: %w", err)
	}
	return nil
}

// blob is a file of blobs/sha256.
type blob struct {
	size int64
	open func() (io.ReadCloser, error)
}

func writeArchive(w io.Writer, images []Named) error {
	images = slices.SortedFunc(slices.Values(images), func(a, b Named) int { return strings.Compare(a.Ref, b.Ref) })
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	blobs := map[string]blob{}
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
	hexes := make([]string, 0, len(blobs))
	for hex := range blobs {
		hexes = append(hexes, hex)
	}
	slices.Sort(hexes)
	for _, hex := range hexes {
		if err := add(out, "blobs/sha256/"+hex, blobs[hex]); err != nil {
			return err
		}
	}
	if err := add(out, "index.json", data(indexJSON)); err != nil {
		return err
	}
	if err := add(out, "oci-layout", data([]byte(`{"imageLayoutVersion":"1.0.0"}`))); err != nil {
		return err
	}
	return out.Close()
}

// collect puts the blobs of an image into blobs and describes its manifest.
func collect(named Named, blobs map[string]blob) (v1.Descriptor, error) {
	manifest, err := named.Image.RawManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	digest, err := named.Image.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	config, err := named.Image.RawConfigFile()
	if err != nil {
		return v1.Descriptor{}, err
	}
	configName, err := named.Image.ConfigName()
	if err != nil {
		return v1.Descriptor{}, err
	}
	file, err := named.Image.ConfigFile()
	if err != nil {
		return v1.Descriptor{}, err
	}
	layers, err := named.Image.Layers()
	if err != nil {
		return v1.Descriptor{}, err
	}
	blobs[digest.Hex], blobs[configName.Hex] = data(manifest), data(config)
	for _, layer := range layers {
		hash, err := layer.Digest()
		if err != nil {
			return v1.Descriptor{}, err
		}
		size, err := layer.Size()
		if err != nil {
			return v1.Descriptor{}, err
		}
		blobs[hash.Hex] = blob{size: size, open: layer.Compressed}
	}
	_, tag, _ := strings.Cut(named.Ref[strings.LastIndexByte(named.Ref, '/')+1:], ":")
	return v1.Descriptor{
		MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(manifest)),
		Annotations: map[string]string{annotationName: named.Ref, annotationTag: tag},
		Platform:    &v1.Platform{OS: "linux", Architecture: file.Architecture},
	}, nil
}

func data(b []byte) blob {
	return blob{size: int64(len(b)), open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

func add(out *tar.Writer, name string, b blob) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: b.size, ModTime: time.Unix(Epoch, 0)}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	r, err := b.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(out, r)
	return err
}
