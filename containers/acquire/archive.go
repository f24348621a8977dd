package acquire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/ociarchive"
)

// dockerFile is where docker save lists the images of an archive.
const dockerFile = "manifest.json"

// openArchive opens an OCI layout, in a tar or a directory, or what docker save wrote. Newer
// archives of docker save are both: then the layout counts, which has the digests of a registry.
func openArchive(path string) (origin, error) {
	a, err := ociarchive.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	index, err := a.Index()
	switch {
	case err == nil:
		return &layout{a, index}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", errUnknown, ociarchive.IndexFile, err), a.Close())
	}
	saved, err := openSaved(a)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return saved, nil
}

// saved is an archive of docker save. It has no manifests as registries have them: they
// are made of what it says, layers as they are, so that the same archive always gives the
// same digest.
type saved struct {
	*ociarchive.Archive
	images   []savedImage
	paths    map[v1.Hash]string
	manifest []byte // of the image that root found
}

type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func openSaved(a *ociarchive.Archive) (*saved, error) {
	text, err := a.Read(dockerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the archive has neither %s, as an OCI layout, nor %s, as docker save writes it", errUnknown, ociarchive.IndexFile, dockerFile)
	}
	s := &saved{Archive: a, paths: map[v1.Hash]string{}}
	if err == nil {
		err = json.Unmarshal(text, &s.images)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnknown, dockerFile, err)
	}
	return s, nil
}

func (s *saved) root(ctx context.Context, w wanted) (v1.Descriptor, error) {
	var all []string
	at := slices.IndexFunc(s.images, func(i savedImage) bool {
		all = append(all, i.RepoTags...)
		return slices.ContainsFunc(i.RepoTags, w.is)
	})
	if at < 0 && len(s.images) == 1 && w.takes(all) {
		at = 0
	}
	if at < 0 {
		return v1.Descriptor{}, absent(all)
	}
	return s.describeImage(ctx, s.images[at])
}

// describeImage makes the manifest of an image.
func (s *saved) describeImage(ctx context.Context, i savedImage) (v1.Descriptor, error) {
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	var err error
	if m.Config, err = s.describe(ctx, i.Config, types.OCIConfigJSON); err != nil {
		return v1.Descriptor{}, err
	}
	for _, l := range i.Layers {
		d, err := s.describe(ctx, l, types.OCIUncompressedLayer)
		if err != nil {
			return v1.Descriptor{}, err
		}
		m.Layers = append(m.Layers, d)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return v1.Descriptor{}, err
	}
	hash, size, err := v1.SHA256(bytes.NewReader(text))
	if err != nil {
		return v1.Descriptor{}, err
	}
	s.manifest = text
	return v1.Descriptor{MediaType: m.MediaType, Digest: hash, Size: size}, nil
}

// describe reads a file of the archive to the end, for its digest.
func (s *saved) describe(ctx context.Context, name string, as types.MediaType) (v1.Descriptor, error) {
	r, err := s.Blob(name)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("%w: %w", errUnknown, err)
	}
	text := bufio.NewReader(bounded.Until(ctx, r))
	if magic, _ := text.Peek(2); string(magic) == "\x1f\x8b" && as == types.OCIUncompressedLayer {
		as = types.OCILayer
	}
	hash, size, err := v1.SHA256(text)
	if err := errors.Join(err, r.Close()); err != nil {
		return v1.Descriptor{}, err
	}
	s.paths[hash] = name
	return v1.Descriptor{MediaType: as, Digest: hash, Size: size}, nil
}

func (s *saved) index(context.Context, v1.Descriptor) ([]byte, error) { return nil, errUnknown } // there is none

func (s *saved) image(context.Context, v1.Descriptor) (v1.Image, error) {
	return ociarchive.NewImage(s.manifest, func(h v1.Hash) (io.ReadCloser, error) { return s.Blob(s.paths[h]) })
}
