package acquire

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/containers/ociarchive"
)

// annotationRef is the annotation with which an OCI layout names an image: by a tag or by
// a whole reference.
const annotationRef = "org.opencontainers.image.ref.name"

type layout struct {
	*ociarchive.Archive
	list *v1.IndexManifest
}

func (l *layout) root(_ context.Context, w wanted) (v1.Descriptor, error) {
	all := l.list.Manifests
	named := slices.DeleteFunc(slices.Clone(all), func(d v1.Descriptor) bool { return !isNamed(d, w) })
	if len(named) == 0 && len(all) == 1 && w.takes(annotated(all[0])) {
		named = all
	}
	switch len(named) {
	case 0:
		return v1.Descriptor{}, absent(names(all))
	case 1:
		return l.typed(named[0])
	}
	same := slices.CompactFunc(slices.Clone(named), func(a, b v1.Descriptor) bool { return a.Digest == b.Digest })
	if len(same) == 1 {
		return l.typed(same[0])
	}
	return v1.Descriptor{}, fmt.Errorf("%w: several of its images have that name", errAbsent)
}

// typed completes a descriptor by what it describes.
func (l *layout) typed(d v1.Descriptor) (v1.Descriptor, error) {
	text, err := l.Document(d.Digest)
	if err != nil {
		return d, err
	}
	if d.Size = int64(len(text)); d.MediaType != "" {
		return d, nil
	}
	var head struct {
		MediaType types.MediaType   `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return d, damaged(d, err)
	}
	switch d.MediaType = head.MediaType; {
	case d.MediaType != "":
	case head.Manifests != nil:
		d.MediaType = types.OCIImageIndex
	default:
		d.MediaType = types.OCIManifestSchema1
	}
	return d, nil
}

func (l *layout) index(_ context.Context, d v1.Descriptor) ([]byte, error) {
	return l.Document(d.Digest)
}

func (l *layout) image(_ context.Context, d v1.Descriptor) (v1.Image, error) {
	return l.ImageAt(d.Digest)
}

// isNamed reports whether a descriptor is that of the image that is wanted: by its digest,
// its whole reference or, where it has no more, its tag.
func isNamed(d v1.Descriptor, w wanted) bool {
	if digest := d.Digest.String(); digest == w.name || (w.name == "" && digest == w.ref.Digest) {
		return true
	}
	names := annotated(d)
	tag := w.name == "" && w.ref.Tag != "" && slices.Equal(names, []string{w.ref.Tag})
	return tag || slices.ContainsFunc(names, w.is)
}

// annotated are the names of a descriptor: a whole reference, a tag, or both.
func annotated(d v1.Descriptor) []string {
	var out []string
	for _, key := range []string{ociarchive.AnnotationName, annotationRef} {
		if name := d.Annotations[key]; name != "" {
			out = append(out, name)
		}
	}
	return out
}

// names are how a layout calls its images: the one name of each that says most.
func names(all []v1.Descriptor) []string {
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = append(annotated(d), d.Digest.String())[0]
	}
	slices.Sort(out)
	return slices.Compact(out)
}
