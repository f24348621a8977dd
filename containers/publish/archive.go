package publish

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// annotationName is the annotation of a manifest in an archive's index.
const annotationName = "io.containerd.image.name"

// maxDocument is the most that is read of a manifest or an image's config, in bytes.
const maxDocument = 16 << 20

// archive is an OCI layout in a plain tar. Its blobs are read where they are.
type archive struct {
	file  *os.File
	blobs map[string]section // by path in the tar
	index v1.IndexManifest
}

type section struct{ offset, size int64 }

func openArchive(path string) (*archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &archive{file: f, blobs: map[string]section{}}
	if err := a.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the image archive %s: %w", path, err), f.Close())
	}
	return a, nil
}

func (a *archive) scan() error {
	r := tar.NewReader(a.file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		offset, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		a.blobs[h.Name] = section{offset, h.Size}
	}
	text, err := a.read("index.json")
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &a.index)
}

func (a *archive) Close() error { return a.file.Close() }

func (a *archive) open(path string) (*io.SectionReader, error) {
	s, ok := a.blobs[path]
	if !ok {
		return nil, fmt.Errorf("it holds no %s", path)
	}
	return io.NewSectionReader(a.file, s.offset, s.size), nil
}

func (a *archive) read(path string) ([]byte, error) {
	r, err := a.open(path)
	if err != nil {
		return nil, err
	}
	if r.Size() > maxDocument {
		return nil, fmt.Errorf("%s has %d bytes, too many for a document", path, r.Size())
	}
	return io.ReadAll(r)
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// image is the image with that reference and digest.
func (a *archive) image(ref, digest string) (v1.Image, error) {
	for _, d := range a.index.Manifests {
		if d.Annotations[annotationName] != ref {
			continue
		}
		if d.Digest.String() != digest {
			return nil, fmt.Errorf("the archive has %s as %s, the bundle's index says %s", ref, d.Digest, digest)
		}
		if !d.MediaType.IsImage() {
			return nil, fmt.Errorf("%s is a %s, not an image of one platform", ref, d.MediaType)
		}
		manifest, err := a.read(blobPath(d.Digest))
		if err != nil {
			return nil, err
		}
		return partial.CompressedToImage(&stored{archive: a, descriptor: d, manifest: manifest})
	}
	return nil, fmt.Errorf("the archive holds no %s", ref)
}

// stored is an image whose blobs are in an archive; its manifest is byte for
// byte that of the archive, so that its digest stays.
type stored struct {
	archive    *archive
	descriptor v1.Descriptor
	manifest   []byte
}

func (s *stored) MediaType() (types.MediaType, error) { return s.descriptor.MediaType, nil }
func (s *stored) RawManifest() ([]byte, error)        { return s.manifest, nil }

func (s *stored) RawConfigFile() ([]byte, error) {
	m, err := partial.Manifest(s)
	if err != nil {
		return nil, err
	}
	return s.archive.read(blobPath(m.Config.Digest))
}

func (s *stored) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	m, err := partial.Manifest(s)
	if err != nil {
		return nil, err
	}
	for _, d := range append(m.Layers, m.Config) {
		if d.Digest == h {
			return &storedLayer{archive: s.archive, descriptor: d}, nil
		}
	}
	return nil, fmt.Errorf("the image has no layer %s", h)
}

type storedLayer struct {
	archive    *archive
	descriptor v1.Descriptor
}

func (l *storedLayer) Digest() (v1.Hash, error)            { return l.descriptor.Digest, nil }
func (l *storedLayer) Size() (int64, error)                { return l.descriptor.Size, nil }
func (l *storedLayer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }
func (l *storedLayer) Descriptor() (*v1.Descriptor, error) { return &l.descriptor, nil }
func (l *storedLayer) Compressed() (io.ReadCloser, error) {
	r, err := l.archive.open(blobPath(l.descriptor.Digest))
	return io.NopCloser(r), err
}
