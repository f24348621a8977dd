package containers

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/imageref"
)

// overridesFile tells the node which upstream references its images stand for.
const overridesFile = "/slipway/images/overrides.json"

// override makes i use the image s in place of others; own is its reference by digest.
func (i *Images) override(s lock.Override, own string) {
	if len(s.StandsFor) == 0 {
		return
	}
	i.Overrides = append(i.Overrides, s)
	if i.StandsFor == nil {
		i.StandsFor = map[string]string{}
	}
	for _, name := range bundle.Names(s.StandsFor, s.Digest, s.Index) {
		i.StandsFor[name] = own
	}
}

// Describe is what is known of the images of a bundle without an engine: their references.
func Describe(b *bundle.Bundle) *Images {
	i := &Images{Refs: b.Images()}
	i.fromBundle(b)
	return i
}

// DescribeLock is what is known of the images of a registry without an engine: their
// references, for the first platform that the lock file has.
func DescribeLock(from *lock.File, registry string) *Images {
	i, _ := pushed(from.Bundles[from.Platforms()[0]], registry)
	return i
}

// Move changes the registry under whose name the nodes of a cluster that is not Slipway's
// pull images, both host[:port][/path].
func (i *Images) Move(from, to string) {
	for _, refs := range []map[string]string{i.Registry, i.StandsFor} {
		for name, ref := range refs {
			if rest, ok := strings.CutPrefix(ref, from+"/"); ok {
				refs[name] = to + "/" + rest
			}
		}
	}
}

// Own reports whether ref is by digest what the run itself calls one of its images.
func (i *Images) Own(ref string) bool {
	for _, refs := range []map[string]string{i.Refs, i.Registry, i.StandsFor} {
		for _, own := range refs {
			if own == ref {
				return true
			}
		}
	}
	return false
}

// Has reports whether the run has an image: by its short name, by its own reference by
// digest, or by a reference that one stands for.
func (i *Images) Has(image string) bool {
	if imageref.IsShort(image) {
		return i.Refs[image] != ""
	}
	if i.Own(image) {
		return true
	}
	normal, err := imageref.Normal(image)
	return err == nil && i.StandsFor[normal] != ""
}

// In returns the images by short name and by what the image of a short name stands for,
// and what is in the place of upstream references, for a cluster. The nodes of one of
// Slipway's own know short names and map references by themselves; another cluster gets
// references to the registry.
func (i *Images) In(own bool) (refs, rewrite map[string]string) {
	if own || i.Registry == nil {
		return i.named(i.Refs), nil
	}
	return i.named(i.Registry), i.StandsFor
}

// named are refs, which are by short name, and under its upstream references each that
// stands for some.
func (i *Images) named(refs map[string]string) map[string]string {
	known, out := i.Refs, maps.Clone(refs)
	if i.Registry != nil {
		known = i.Registry
	}
	for name, ref := range known {
		for upstream, own := range i.StandsFor {
			if own == ref {
				out[upstream] = refs[name]
			}
		}
	}
	return out
}

// fromBundle: what the images of a bundle stand for.
func (i *Images) fromBundle(b *bundle.Bundle) {
	for _, image := range b.Index.Images {
		i.override(lock.Override{Image: image.Ref, Digest: image.Digest, Index: image.Index, StandsFor: image.StandsFor}, image.Pinned())
	}
}

func (i *Images) overridesText() string {
	text, _ := json.Marshal(i.Overrides) // text can always be encoded
	return string(text)
}
