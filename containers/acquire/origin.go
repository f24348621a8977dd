package acquire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/imageref"
)

// origin is a place that images are taken from.
type origin interface {
	// root describes the image that is wanted: a manifest or an index.
	root(ctx context.Context, w wanted) (v1.Descriptor, error)
	// blob reads a document or a layer. Nothing has verified it yet.
	blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
	io.Closer
}

// wanted is an image that is looked for in an origin.
type wanted struct {
	ref  imageref.Reference // by which manifests and charts name it
	name string             // by which the origin names it; empty: as ref
}

// is reports whether name, a whole reference or what was given, is that of the image.
func (w wanted) is(name string) bool {
	ref := w.ref
	if w.name != "" {
		var err error
		if ref, err = imageref.Parse(w.name); name == w.name || err != nil {
			return name == w.name
		}
	}
	r, err := imageref.Parse(name)
	return err == nil && ref.Tag != "" && r.Tagged() == ref.Tagged()
}

// takes reports whether the only image of an origin will do, whose names are not that of
// the image: it has none, or its digest will tell.
func (w wanted) takes(names []string) bool {
	return w.name == "" && (len(names) == 0 || w.ref.Digest != "")
}

// absent says which images there are in place of the one that is wanted.
func absent(names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%w: it has several, without names", errAbsent)
	}
	return fmt.Errorf("%w: it has %s", errAbsent, strings.Join(names, ", "))
}

// document is a manifest or an index, whose digest has been verified.
type document struct {
	descriptor v1.Descriptor
	text       []byte
}

// found is an image in its origin.
type found struct {
	index    *document // that the manifest was chosen from; nil for none
	manifest document
	parts    []v1.Descriptor // config and layers, each once
}

func (f *found) digest() string { return f.manifest.descriptor.Digest.String() }

func (f *found) indexDigest() string {
	if f.index == nil {
		return ""
	}
	return f.index.descriptor.Digest.String()
}

// top describes what the image is known by: its index if it has one.
func (f *found) top() v1.Descriptor {
	if f.index != nil {
		return f.index.descriptor
	}
	return f.manifest.descriptor
}

func (f *found) topDigest() string { return f.top().Digest.String() }

// size is how many bytes there are to take.
func (f *found) size() int64 {
	var n int64
	for _, d := range f.parts {
		n += d.Size
	}
	return n
}

// choose finds the image that is wanted in from, for platform, such as "linux/amd64".
func choose(ctx context.Context, from origin, w wanted, platform string) (*found, error) {
	d, err := from.root(ctx, w)
	if err != nil {
		return nil, err
	}
	f := &found{}
	if f.manifest, err = read(ctx, from, d); err != nil {
		return nil, err
	}
	if d.MediaType.IsIndex() {
		f.index = &document{descriptor: d, text: f.manifest.text}
		var index v1.IndexManifest
		if err := json.Unmarshal(f.index.text, &index); err != nil {
			return nil, damaged(d, err)
		}
		if d, err = pick(index.Manifests, platform); err != nil {
			return nil, err
		}
		if d.MediaType.IsIndex() {
			return nil, fmt.Errorf("%w: it is an index of indexes", errUnknown)
		}
		if f.manifest, err = read(ctx, from, d); err != nil {
			return nil, err
		}
	}
	return f, f.resolve(ctx, from, platform)
}

// pick is the one of an index for platform. Attestations and such are for "unknown".
func pick(all []v1.Descriptor, platform string) (v1.Descriptor, error) {
	var there []string
	for _, d := range all {
		if d.Platform == nil {
			continue
		}
		if is := d.Platform.OS + "/" + d.Platform.Architecture; is == platform {
			return d, nil
		} else if d.Platform.OS != "unknown" {
			there = append(there, is)
		}
	}
	if len(all) == 1 && all[0].Platform == nil {
		return all[0], nil // its config says what it is for
	}
	slices.Sort(there)
	return v1.Descriptor{}, fmt.Errorf("%w: it exists only for %[3]s, not for %[2]s", errPlatform, platform, strings.Join(slices.Compact(there), ", "))
}

// resolve reads manifest and config.
func (f *found) resolve(ctx context.Context, from origin, platform string) error {
	d := f.manifest.descriptor
	if !d.MediaType.IsImage() {
		return fmt.Errorf("%w: it is a %s", errUnknown, d.MediaType)
	}
	var m v1.Manifest
	if err := json.Unmarshal(f.manifest.text, &m); err != nil {
		return damaged(d, err)
	}
	config, err := read(ctx, from, m.Config)
	if err != nil {
		return err
	}
	var c v1.ConfigFile
	if err := json.Unmarshal(config.text, &c); err != nil {
		return damaged(m.Config, err)
	}
	if is := c.OS + "/" + c.Architecture; is != platform {
		return fmt.Errorf("%w: it is for %s, the bundle is for %s", errPlatform, is, platform)
	}
	if len(c.RootFS.DiffIDs) != len(m.Layers) {
		return damaged(d, fmt.Errorf("it has %d layers, its config names %d", len(m.Layers), len(c.RootFS.DiffIDs)))
	}
	for _, part := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if !slices.ContainsFunc(f.parts, func(p v1.Descriptor) bool { return p.Digest == part.Digest }) {
			f.parts = append(f.parts, part)
		}
	}
	return nil
}

// read reads a document and verifies its digest.
func read(ctx context.Context, from origin, d v1.Descriptor) (document, error) {
	if d.Size > ociarchive.MaxDocument {
		return document{}, damaged(d, fmt.Errorf("it has %d bytes, too many for a document", d.Size))
	}
	r, err := from.blob(ctx, d)
	if err != nil {
		return document{}, err
	}
	text, err := bounded.Read(r, ociarchive.MaxDocument)
	if err := errors.Join(err, r.Close()); err != nil {
		return document{}, err
	}
	got, _, err := v1.SHA256(bytes.NewReader(text))
	if err != nil {
		return document{}, err
	}
	if got != d.Digest {
		return document{}, damaged(d, fmt.Errorf("its digest is %s", got))
	}
	d.Size = int64(len(text))
	return document{descriptor: d, text: text}, nil
}

// head is how a document says what it is.
func head(text []byte) (types.MediaType, error) {
	var h struct {
		MediaType types.MediaType   `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return "", err
	}
	switch {
	case h.MediaType != "":
		return h.MediaType, nil
	case h.Manifests != nil:
		return types.OCIImageIndex, nil
	}
	return types.OCIManifestSchema1, nil
}

func damaged(d v1.Descriptor, err error) error {
	return fmt.Errorf("%w: %s: %w", errUnknown, d.Digest, err)
}
