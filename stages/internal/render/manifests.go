// Package render makes the objects of a component from its files, without a cluster.
package render

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Manifests are the objects of a component of kind manifests or job, as its files have
// them: those of a kustomization, or of the files themselves. Where the component names a
// directory of the bundle, these are patches of its objects, or additions to them. bundle
// is the directory that holds the bundle's manifests.
func Manifests(release, bundle fs.FS, c platform.Component) ([]*unstructured.Unstructured, error) {
	var own []*unstructured.Unstructured
	var err error
	if c.Path != "" {
		if own, err = files(release, c.Path); err != nil {
			return nil, fmt.Errorf("the platform release: %w", err)
		}
	}
	if c.Bundle == "" {
		return own, nil
	}
	objs, err := read(bundle, c.Bundle)
	if err != nil {
		return nil, fmt.Errorf("the bundle: %w", err)
	}
	first, last := c.Patches()
	before, err := kube.Decode(first)
	if err != nil {
		return nil, err
	}
	after, err := kube.Decode(last)
	if err != nil {
		return nil, err
	}
	return merge(objs, append(append(before, own...), after...))
}

// files are the objects of a file, a directory or a kustomization of the release.
func files(release fs.FS, name string) ([]*unstructured.Unstructured, error) {
	info, err := fs.Stat(release, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return readFile(release, name)
	}
	if kustomization(release, name) != "" {
		return kustomize(release, name)
	}
	return read(release, name)
}

// read decodes every manifest of dir and below, in the order of the names.
func read(fsys fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	found := false
	err := fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !platform.IsManifest(name) {
			return err
		}
		found = true
		objs, err := readFile(fsys, name)
		out = append(out, objs...)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s holds no YAML file", dir)
	}
	return out, err
}

func readFile(fsys fs.FS, name string) ([]*unstructured.Unstructured, error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	objs, err := kube.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return objs, nil
}
