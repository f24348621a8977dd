package acquire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/slipway-sh/slipway/containers/ociarchive"
)

// annotationRef is the annotation with which an OCI layout names an image: by a tag or by
// a whole reference.
const annotationRef = "org.opencontainers.image.ref.name"

// layout is an OCI layout.
type layout struct {
	*ociarchive.Archive
	index *v1.IndexManifest
}

func (l *layout) root(ctx context.Context, w wanted) (v1.Descriptor, error) {
	all := l.index.Manifests
	named := slices.DeleteFunc(slices.Clone(all), func(d v1.Descriptor) bool { return !isNamed(d, w) })
	if len(named) == 0 && len(all) == 1 && w.takes(annotated(all[0])) {
		named = all
	}
	switch len(named) {
	case 0:
		return v1.Descriptor{}, absent(names(all))
	case 1:
		return l.typed(ctx, named[0])
	}
	same := slices.CompactFunc(slices.Clone(named), func(a, b v1.Descriptor) bool { return a.Digest == b.Digest })
	if len(same) == 1 {
		return l.typed(ctx, same[0])
	}
	return v1.Descriptor{}, fmt.Errorf("%w: several of its images have that name", errAbsent)
}

// typed completes a descriptor that does not say what it describes.
func (l *layout) typed(ctx context.Context, d v1.Descriptor) (v1.Descriptor, error) {
	if d.MediaType != "" {
		return d, nil
	}
	doc, err := read(ctx, l, d)
	if err != nil {
		return d, err
	}
	d.MediaType, err = head(doc.text)
	return d, err
}

func (l *layout) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	r, err := l.Blob(ociarchive.BlobPath(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it lacks the blob %s", errUnknown, d.Digest)
	}
	return r, err
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
