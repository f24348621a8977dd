package publish

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/imageref"
)

// indexType is the media type of the layer that holds an index of several platforms.
const indexType types.MediaType = "application/vnd.slipway.image.index.v1+json"

// maxVersion is how much of an image's tag there is in its tag in the registry, in bytes:
// a tag has 128 at most.
const maxVersion = 100

// added is an image that was added to the bundle, and its index if it has one, in a: both
// go into one repository.
func added(i bundle.Image, a *ociarchive.Archive, b *bundle.Bundle) ([]part, error) {
	ref, err := imageref.Parse(i.Name)
	if err != nil {
		return nil, err
	}
	image, err := a.Image(i.Ref, i.Digest)
	if err != nil {
		return nil, err
	}
	version := "untagged"
	if ref.Tag != "" {
		version = ref.Tag[:min(len(ref.Tag), maxVersion)]
	}
	out := []part{{name: i.Repository(), title: i.Name, version: version, image: image}}
	if i.Index == "" {
		return out, nil
	}
	hash, err := v1.NewHash(i.Index)
	if err != nil {
		return nil, err
	}
	text, err := a.Document(hash)
	if err != nil {
		return nil, err
	}
	// A registry takes an index itself only if it has all of its images; a blob that no manifest
	// names it may remove. So the index is the layer of an image.
	holder, err := imageOf(b.Platform, mutate.Addendum{
		Layer: static.NewLayer(text, indexType), MediaType: indexType, History: v1.History{CreatedBy: "slipway bundle push"},
	})
	if err != nil {
		return nil, fmt.Errorf("make the image of its index: %w", err)
	}
	return append(out, part{name: i.Repository(), title: "index of " + i.Name, version: "index", image: holder}), nil
}
