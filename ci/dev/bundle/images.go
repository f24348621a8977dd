package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/ci/dev/build/store"
)

// image makes the image of that name out of its Debian layers and its files.
func (b *builder) image(ctx context.Context, name string, d definition) (v1.Image, error) {
	var layers []v1.Layer
	if d.debian != "" {
		for _, l := range b.layers[d.debian].Stack() {
			layers = append(layers, l.Layer)
		}
	}
	if len(d.files)+len(d.trees) > 0 {
		layer, err := b.fileLayer(ctx, name, d)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	image, err := oci.NewImage(d.config, layers...)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return image, nil
}

// fileLayer is an image's layer of own files. Files of the store and of modules
// never change under their names, so they are not read to find out whether the
// layer is there.
func (b *builder) fileLayer(ctx context.Context, name string, d definition) (v1.Layer, error) {
	in := store.NewInputs("bundle-files-"+name).
		String("layer", fmt.Sprint(oci.Epoch, oci.Level)).
		String("trees", d.treesVersion)
	for _, t := range d.trees {
		in.String("tree", t.Into)
	}
	for _, f := range d.files {
		source := f.Source
		if inStore, ok := strings.CutPrefix(source, b.store.Path()+"/"); ok {
			source = inStore
		} else if source != "" {
			content, err := os.ReadFile(source)
			if err != nil {
				return nil, fmt.Errorf("image %s: %w", name, err)
			}
			source = string(content)
		}
		in.Strings("file", []string{f.Path, f.Mode.String(), fmt.Sprint(f.Owner, f.Dir), source, string(f.Data), f.Link})
	}
	dir, _, err := b.store.Do(ctx, in.Key(), func(ctx context.Context, dir string) error {
		_, err := oci.WriteLayer(ctx, dir, d.trees, d.files)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return oci.OpenLayer(dir)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
