package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// imageName is the annotation of a manifest in index.json that holds the whole
// reference of the image.
const imageName = "io.containerd.image.name"

// archive is one or several OCI layouts in plain tars. Blobs are read where they are.
type archive struct {
	files []*os.File
	blobs map[digest.Digest]section
	index ocispec.Index
}

type section struct {
	file         *os.File
	offset, size int64
}

// archiveImage is an image of an archive: its descriptors from the one that its name stands for,
// an index perhaps, to the manifest for this machine's architecture.
type archiveImage struct {
	name  string // slipway.local/gitea:1.26.0
	chain []ocispec.Descriptor
}

// openArchive reads the tables of contents of archives, and takes them as one. A missing
// file is an error that matches fs.ErrNotExist.
func openArchive(files ...string) (*archive, error) {
	a := &archive{blobs: map[digest.Digest]section{}}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			release(a)
			return nil, fmt.Errorf("open the image archive: %w", err)
		}
		a.files = append(a.files, f)
		if err := a.scan(f); err != nil {
			release(a)
			return nil, fmt.Errorf("read the image archive %s: %w", file, err)
		}
	}
	return a, nil
}

// Close closes the files.
func (a *archive) Close() error {
	var all []error
	for _, f := range a.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}

func (a *archive) scan(file *os.File) error {
	var index []byte
	r := tar.NewReader(file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := path.Clean(h.Name)
		if name == ocispec.ImageIndexFile {
			if index, err = io.ReadAll(io.LimitReader(r, 64<<20)); err != nil {
				return err
			}
			continue
		}
		algorithm, hex, ok := strings.Cut(strings.TrimPrefix(name, ocispec.ImageBlobsDir+"/"), "/")
		if !ok || !strings.HasPrefix(name, ocispec.ImageBlobsDir+"/") {
			continue
		}
		// The reader takes exactly the header from the file, so that the file
		// stands at the content.
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		a.blobs[digest.NewDigestFromEncoded(digest.Algorithm(algorithm), hex)] = section{file, offset, h.Size}
	}
	if index == nil {
		return errors.New("there is no index.json: it is not an OCI archive")
	}
	var more ocispec.Index
	err := json.Unmarshal(index, &more)
	a.index.Manifests = append(a.index.Manifests, more.Manifests...)
	return err
}

// blob is a reader of one blob; nothing has verified its content yet.
func (a *archive) blob(d digest.Digest) (*io.SectionReader, bool) {
	s, ok := a.blobs[d]
	return io.NewSectionReader(s.file, s.offset, s.size), ok
}

// read is a small blob whose digest has been verified.
func (a *archive) read(d ocispec.Descriptor) ([]byte, error) {
	r, ok := a.blob(d.Digest)
	if !ok {
		return nil, fmt.Errorf("blob %s is missing", d.Digest)
	}
	b, err := io.ReadAll(io.LimitReader(r, 32<<20))
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(b) != d.Digest {
		return nil, fmt.Errorf("blob %s is damaged: its digest is %s", d.Digest, digest.FromBytes(b))
	}
	return b, nil
}

func (a *archive) images() ([]archiveImage, error) {
	var all []archiveImage
	for _, d := range a.index.Manifests {
		name := d.Annotations[imageName]
		if name == "" {
			continue
		}
		chain, err := a.resolve(d)
		if err != nil {
			return nil, fmt.Errorf("image %s of the archive: %w", name, err)
		}
		all = append(all, archiveImage{name, chain})
	}
	slices.SortFunc(all, func(x, y archiveImage) int { return strings.Compare(x.name, y.name) })
	return all, nil
}

// resolve finds the manifest for this machine below d, the one that package acquire chose
// when it added the image. One that does not say what it is for will do if it is the only one.
func (a *archive) resolve(d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	text, err := a.read(d)
	if err != nil {
		return nil, err
	}
	if d.MediaType != ocispec.MediaTypeImageIndex && d.MediaType != "application/vnd.docker.distribution.manifest.list.v2+json" {
		return []ocispec.Descriptor{d}, nil
	}
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("decode blob %s: %w", d.Digest, err)
	}
	at := slices.IndexFunc(index.Manifests, func(m ocispec.Descriptor) bool {
		return m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH
	})
	if at < 0 && len(index.Manifests) == 1 && index.Manifests[0].Platform == nil {
		at = 0
	}
	if at < 0 {
		return nil, fmt.Errorf("nothing for linux/%s", runtime.GOARCH)
	}
	below, err := a.resolve(index.Manifests[at])
	return append([]ocispec.Descriptor{d}, below...), err
}

// repository is a reference without tag and digest.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndex(ref, ":"); colon > strings.LastIndex(ref, "/") {
		ref = ref[:colon]
	}
	return ref
}
