package publish

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
)

type part struct {
	name, version string
	title         string // for people, where that is not name
	image         v1.Image
	digest        v1.Hash
	size          int64 // bytes of its layers
}

// parts is everything of a bundle as images. Layers that are made here are kept in the directory
// scratch. The caller closes archives.
func parts(b *bundle.Bundle, scratch string, archives ociarchive.Archives) ([]part, error) {
	var all []part
	for _, i := range b.Index.Images {
		a, err := archives.Open(b.Path(i.In()))
		if err != nil {
			return nil, err
		}
		if i.Added() {
			more, err := added(i, a, b)
			if err != nil {
				return nil, fmt.Errorf("read the image %s of the bundle: %w", i.Name, err)
			}
			all = append(all, more...)
			continue
		}
		image, err := a.Image(i.Ref, i.Digest)
		if err == nil && i.Name == lock.Toolchain {
			image, err = withTools(image, b, scratch)
		}
		if err != nil {
			return nil, fmt.Errorf("read the image %s of the bundle: %w", i.Name, err)
		}
		all = append(all, part{name: i.Name, version: i.Ref[strings.LastIndexByte(i.Ref, ':')+1:], image: image})
	}
	image, err := manifestImage(b, scratch)
	if err != nil {
		return nil, fmt.Errorf("make the image of the manifests: %w", err)
	}
	all = append(all, part{name: lock.Manifests, version: "1", image: image})
	for n := range all {
		if err := all[n].measure(); err != nil {
			return nil, fmt.Errorf("read the image %s: %w", all[n].name, err)
		}
		all[n].title = cmp.Or(all[n].title, all[n].name)
	}
	return all, nil
}

func (p *part) measure() error {
	var err error
	if p.digest, err = p.image.Digest(); err != nil {
		return err
	}
	layers, err := p.image.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return err
		}
		p.size += size
	}
	return nil
}

// tag is the part's tag. It has the content in it, so that no tag ever moves: a
// registry may forbid that, and may remove images without a tag.
func (p *part) tag() string { return p.version + "-" + p.digest.Hex[:12] }

// withTools puts each tool into a layer of its own: who pushes the next version
// uploads the tools that changed.
func withTools(base v1.Image, b *bundle.Bundle, scratch string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, f := range b.Files {
		if f.Kind != bundle.Tool {
			continue
		}
		l, err := writeLayer(filepath.Join(scratch, "tool-"+f.Name+".tar.gz"),
			[]entry{{path: "usr/local/bin/" + f.Name, from: b.Path(f.Path), mode: 0o755}})
		if err != nil {
			return nil, err
		}
		layers = append(layers, addendum(l))
	}
	return mutate.Append(base, layers...)
}

func manifestImage(b *bundle.Bundle, scratch string) (v1.Image, error) {
	var entries []entry
	for _, f := range b.Files {
		if rest, ok := strings.CutPrefix(f.Path, "manifests/"); ok && f.Kind == bundle.Manifest {
			entries = append(entries, entry{path: rest, from: b.Path(f.Path), mode: 0o644})
		}
	}
	l, err := writeLayer(filepath.Join(scratch, "manifests.tar.gz"), entries)
	if err != nil {
		return nil, err
	}
	return imageOf(b.Platform, addendum(l))
}

func imageOf(platform string, layer mutate.Addendum) (v1.Image, error) {
	system, arch, _ := strings.Cut(platform, "/")
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: system, Architecture: arch, RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
	})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(image, layer)
}

func addendum(l v1.Layer) mutate.Addendum {
	return mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{CreatedBy: "slipway bundle push"}}
}
