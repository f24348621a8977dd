package acquire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/imageref"
)

// top is what an image is known by where it is taken from: its manifest, or an index of several
// platforms.
type top struct {
	v1.Descriptor
	text  []byte
	image func(v1.Descriptor) (v1.Image, error) // the one that the index describes, or itself
	close func() error                          // of an archive; nil for none
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

// takes reports whether the only image of an origin will do under other names: it has no name, or
// its digest is compared.
func (w wanted) takes(names []string) bool {
	return w.name == "" && (len(names) == 0 || w.ref.Digest != "")
}

func absent(names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%w: it has several, without names", errAbsent)
	}
	return fmt.Errorf("%w: it has %s", errAbsent, strings.Join(names, ", "))
}

type found struct {
	top      v1.Descriptor
	text     []byte // of the index; nil for none
	image    v1.Image
	manifest v1.Hash
	parts    []v1.Descriptor // config and layers, each once
}

func (f *found) digest() string { return f.manifest.String() }

func (f *found) indexDigest() string {
	if f.text == nil {
		return ""
	}
	return f.topDigest()
}

func (f *found) topDigest() string { return f.top.Digest.String() }

func (f *found) size() int64 {
	var n int64
	for _, d := range f.parts {
		n += d.Size
	}
	return n
}

// choose finds the image for platform, such as "linux/amd64".
func choose(from *top, platform string) (*found, error) {
	f, d, err := &found{top: from.Descriptor}, from.Descriptor, error(nil)
	if d.MediaType.IsIndex() {
		f.text = from.text
		var index v1.IndexManifest
		if err := json.Unmarshal(f.text, &index); err != nil {
			return nil, damaged(d, err)
		}
		if d, err = pick(index.Manifests, platform); err != nil {
			return nil, err
		}
	}
	if !d.MediaType.IsImage() {
		return nil, fmt.Errorf("%w: it is a %s", errUnknown, d.MediaType)
	}
	if f.image, err = from.image(d); err != nil {
		return nil, err
	}
	f.manifest = d.Digest
	return f, f.check(platform)
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

func (f *found) check(platform string) error {
	m, err := f.image.Manifest()
	if err != nil {
		return err
	}
	if m.Config.Size > ociarchive.MaxDocument {
		return damaged(m.Config, fmt.Errorf("it has %d bytes, too many for a document", m.Config.Size))
	}
	c, err := f.image.ConfigFile()
	if err != nil {
		return err
	}
	if is := c.OS + "/" + c.Architecture; is != platform {
		return fmt.Errorf("%w: it is for %s, the bundle is for %s", errPlatform, is, platform)
	}
	if len(c.RootFS.DiffIDs) != len(m.Layers) {
		return damaged(m.Config, fmt.Errorf("it names %d layers, the manifest has %d", len(c.RootFS.DiffIDs), len(m.Layers)))
	}
	for _, part := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if !slices.ContainsFunc(f.parts, func(p v1.Descriptor) bool { return p.Digest == part.Digest }) {
			f.parts = append(f.parts, part)
		}
	}
	return nil
}

func damaged(d v1.Descriptor, err error) error {
	return fmt.Errorf("%w: %s: %w", errUnknown, d.Digest, err)
}
