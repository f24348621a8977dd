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

const dockerFile = "manifest.json"

// openArchive finds the image that is wanted in an OCI layout, in a tar or a directory, or in what
// docker save wrote. Newer archives of docker save are both: then the layout counts, which has the
// digests of a registry.
func openArchive(ctx context.Context, path string, w wanted) (*top, error) {
	a, err := ociarchive.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	var found *top
	index, err := a.Index()
	switch {
	case err == nil:
		found, err = inLayout(a, index.Manifests, w)
	case errors.Is(err, fs.ErrNotExist):
		found, err = inSaved(ctx, a, w)
	default:
		err = fmt.Errorf("%w: %s: %w", errUnknown, ociarchive.IndexFile, err)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	found.close = a.Close
	return found, nil
}

// saved is an archive of docker save. It has no manifests as registries have them: they
// are made of what it says, layers as they are, so that the same archive always gives the
// same digest.
type saved struct {
	*ociarchive.Archive
	paths map[v1.Hash]string
}

type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func inSaved(ctx context.Context, a *ociarchive.Archive, w wanted) (*top, error) {
	text, err := a.Read(dockerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the archive has neither %s, as an OCI layout, nor %s, as docker save writes it", errUnknown, ociarchive.IndexFile, dockerFile)
	}
	var images []savedImage
	if err == nil {
		err = json.Unmarshal(text, &images)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnknown, dockerFile, err)
	}
	var all []string
	at := slices.IndexFunc(images, func(i savedImage) bool {
		all = append(all, i.RepoTags...)
		return slices.ContainsFunc(i.RepoTags, w.is)
	})
	if at < 0 && len(images) == 1 && w.takes(all) {
		at = 0
	}
	if at < 0 {
		return nil, absent(all)
	}
	s := &saved{a, map[v1.Hash]string{}}
	return s.manifest(ctx, images[at])
}

func (s *saved) manifest(ctx context.Context, i savedImage) (*top, error) {
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	var err error
	if m.Config, err = s.describe(ctx, i.Config, types.OCIConfigJSON); err != nil {
		return nil, err
	}
	for _, l := range i.Layers {
		d, err := s.describe(ctx, l, types.OCIUncompressedLayer)
		if err != nil {
			return nil, err
		}
		m.Layers = append(m.Layers, d)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	hash, size, err := v1.SHA256(bytes.NewReader(text))
	return &top{Descriptor: v1.Descriptor{MediaType: m.MediaType, Digest: hash, Size: size}, text: text, image: func(v1.Descriptor) (v1.Image, error) {
		return ociarchive.NewImage(text, func(h v1.Hash) (io.ReadCloser, error) { return s.Blob(s.paths[h]) })
	}}, err
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
