// Package ociarchive reads image archives: an OCI layout, or what docker save writes, in
// a plain tar or a directory. Blobs are read where they are. It also reads the
// Debian packages in a bundle's archives.
package ociarchive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/bounded"
)

// AnnotationName is the annotation of a manifest in an archive's index that holds the
// whole reference of the image.
const AnnotationName = "io.containerd.image.name"

// IndexFile is where an OCI layout lists its images.
const IndexFile = "index.json"

// MaxDocument is the most that is read of a manifest or an image's config, in bytes.
const MaxDocument = 16 << 20

// Archive is an open archive, or an open directory. Its methods may be called concurrently.
type Archive struct {
	open  func(name string) (io.ReadCloser, error) // by path in the archive
	close func() error
}

// Open opens the archive, or the directory, at path.
func Open(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		files := os.DirFS(path)
		return &Archive{open: func(name string) (io.ReadCloser, error) { return files.Open(name) }, close: f.Close}, nil
	}
	t := contents{file: f, files: map[string]section{}, links: map[string]string{}}
	if err == nil {
		err = t.scan()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the image archive %s (if it is compressed, unpack it first): %w", path, err), f.Close())
	}
	return &Archive{open: t.open, close: f.Close}, nil
}

// Close closes the archive.
func (a *Archive) Close() error { return a.close() }

// Archives are open archives by path, each opened once.
type Archives map[string]*Archive

// Open opens the archive at path unless it is open.
func (a Archives) Open(path string) (*Archive, error) {
	if a[path] == nil {
		opened, err := Open(path)
		if err != nil {
			return nil, err
		}
		a[path] = opened
	}
	return a[path], nil
}

// Close closes all of them, which were only read.
func (a Archives) Close() {
	for _, opened := range a {
		_ = opened.Close()
	}
}

type contents struct {
	file  *os.File
	files map[string]section // by path in the tar
	links map[string]string  // the path that a link leads to
}

type section struct{ offset, size int64 }

func (t *contents) scan() error {
	r := tar.NewReader(t.file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			// The reader takes exactly the header from the file, so that the file stands at
			// the content.
			offset, err := t.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			t.files[name] = section{offset, h.Size}
		case tar.TypeSymlink:
			t.links[name] = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			t.links[name] = path.Clean(h.Linkname)
		}
	}
}

func (t *contents) open(name string) (io.ReadCloser, error) {
	if to, ok := t.links[name]; ok {
		name = to
	}
	s, ok := t.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(io.NewSectionReader(t.file, s.offset, s.size)), nil
}

// Blob opens a file of the archive. One that is not there matches fs.ErrNotExist.
func (a *Archive) Blob(name string) (io.ReadCloser, error) { return a.open(name) }

// Read is the content of a small file of the archive.
func (a *Archive) Read(name string) ([]byte, error) {
	r, err := a.Blob(name)
	if err != nil {
		return nil, err
	}
	text, err := bounded.Read(r, MaxDocument)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// BlobPath is where an OCI layout has a blob.
func BlobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// Index lists the images of an OCI layout.
func (a *Archive) Index() (*v1.IndexManifest, error) {
	text, err := a.Read(IndexFile)
	if err != nil {
		return nil, err
	}
	var index v1.IndexManifest
	return &index, json.Unmarshal(text, &index)
}

// Document reads a manifest, an index or a config, and compares it with its digest.
func (a *Archive) Document(h v1.Hash) ([]byte, error) { return document(a.blob, h) }

func (a *Archive) blob(h v1.Hash) (io.ReadCloser, error) { return a.Blob(BlobPath(h)) }

func document(blob func(v1.Hash) (io.ReadCloser, error), h v1.Hash) ([]byte, error) {
	r, err := blob(h)
	if err != nil {
		return nil, err
	}
	text, err := bounded.Read(r, MaxDocument)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", h, err)
	}
	if got, _, err := v1.SHA256(bytes.NewReader(text)); err != nil || got != h {
		return nil, errors.Join(err, fmt.Errorf("%s: its digest is %s", h, got))
	}
	return text, nil
}

// Image is the image with that digest. If it has a descriptor of its own in the index of
// the archive, that has to be named ref.
func (a *Archive) Image(ref, digest string) (v1.Image, error) {
	index, err := a.Index()
	if err != nil {
		return nil, err
	}
	want, err := v1.NewHash(digest)
	if err != nil {
		return nil, err
	}
	named := false
	for _, d := range index.Manifests {
		if d.Annotations[AnnotationName] != ref {
			continue
		}
		named = true
		if d.MediaType.IsImage() && d.Digest != want {
			return nil, fmt.Errorf("the archive has %s as %s, the bundle's index says %s", ref, d.Digest, digest)
		}
	}
	if !named {
		return nil, fmt.Errorf("the archive holds no %s", ref)
	}
	return a.ImageAt(want)
}

// ImageAt is the image whose manifest has that digest.
func (a *Archive) ImageAt(h v1.Hash) (v1.Image, error) {
	manifest, err := a.Document(h)
	if err != nil {
		return nil, err
	}
	return NewImage(manifest, a.blob)
}

// NewImage is the image with a manifest, whose blobs are read by their digests. The manifest stays
// byte for byte, so that its digest does.
func NewImage(manifest []byte, blob func(v1.Hash) (io.ReadCloser, error)) (v1.Image, error) {
	var head struct {
		MediaType types.MediaType `json:"mediaType"`
	}
	if err := json.Unmarshal(manifest, &head); err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	if head.MediaType == "" {
		head.MediaType = types.OCIManifestSchema1
	}
	if !head.MediaType.IsImage() {
		return nil, fmt.Errorf("it is a %s, not an image of one platform", head.MediaType)
	}
	return partial.CompressedToImage(&stored{head.MediaType, manifest, blob})
}

type stored struct {
	mediaType types.MediaType
	manifest  []byte
	blob      func(v1.Hash) (io.ReadCloser, error)
}

func (s *stored) MediaType() (types.MediaType, error) { return s.mediaType, nil }
func (s *stored) RawManifest() ([]byte, error)        { return s.manifest, nil }

func (s *stored) RawConfigFile() ([]byte, error) {
	m, err := partial.Manifest(s)
	if err != nil {
		return nil, err
	}
	return document(s.blob, m.Config.Digest)
}

func (s *stored) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	m, err := partial.Manifest(s)
	if err != nil {
		return nil, err
	}
	for _, d := range append(m.Layers, m.Config) {
		if d.Digest == h {
			return &storedLayer{s, d}, nil
		}
	}
	return nil, fmt.Errorf("the image has no layer %s", h)
}

type storedLayer struct {
	image      *stored
	descriptor v1.Descriptor
}

func (l *storedLayer) Digest() (v1.Hash, error)            { return l.descriptor.Digest, nil }
func (l *storedLayer) Size() (int64, error)                { return l.descriptor.Size, nil }
func (l *storedLayer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }
func (l *storedLayer) Descriptor() (*v1.Descriptor, error) { return &l.descriptor, nil }
func (l *storedLayer) Compressed() (io.ReadCloser, error)  { return l.image.blob(l.descriptor.Digest) }
