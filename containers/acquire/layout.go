package acquire

import (
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

// inLayout finds the image that is wanted in an OCI layout that lists these.
func inLayout(a *ociarchive.Archive, all []v1.Descriptor, w wanted) (*top, error) {
	named := slices.DeleteFunc(slices.Clone(all), func(d v1.Descriptor) bool { return !isNamed(d, w) })
	if len(named) == 0 && len(all) == 1 && w.takes(annotated(all[0])) {
		named = all
	}
	named = slices.CompactFunc(slices.Clone(named), func(a, b v1.Descriptor) bool { return a.Digest == b.Digest })
	switch len(named) {
	case 0:
		return nil, absent(names(all))
	case 1:
	default:
		return nil, fmt.Errorf("%w: several of its images have that name", errAbsent)
	}
	d := named[0]
	text, err := a.Document(d.Digest)
	if err != nil {
		return nil, err
	}
	if d.Size = int64(len(text)); d.MediaType == "" {
		if d.MediaType, err = typeOf(text); err != nil {
			return nil, damaged(d, err)
		}
	}
	return &top{Descriptor: d, text: text, image: func(d v1.Descriptor) (v1.Image, error) { return a.ImageAt(d.Digest) }}, nil
}

func typeOf(text []byte) (types.MediaType, error) {
	var head struct {
		MediaType types.MediaType   `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	err := json.Unmarshal(text, &head)
	switch {
	case err != nil || head.MediaType != "":
		return head.MediaType, err
	case head.Manifests != nil:
		return types.OCIImageIndex, nil
	}
	return types.OCIManifestSchema1, nil
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
