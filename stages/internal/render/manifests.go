// Package render makes the objects of a component from its files; ChartOptions.ForCluster alone
// asks a cluster.
package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Source is a file, or a directory with a kustomization, and the objects that it holds.
type Source struct {
	Name    string
	Objects []*unstructured.Unstructured
}

// Manifests are the objects of a component of kind manifests, job or appset, as its files
// have them: those of a kustomization, or of the files themselves. Where the component names a
// directory of the bundle, these are patches of its objects, or additions to them. bundle
// is the directory that holds the bundle's manifests.
func Manifests(ctx context.Context, release, bundle fs.FS, c platform.Component) ([]*unstructured.Unstructured, error) {
	sources, err := Sources(ctx, release, bundle, c)
	return flat(sources), err
}

func flat(sources []Source) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, s := range sources {
		out = append(out, s.Objects...)
	}
	return out
}

// Sources are the objects of Manifests by where they are from. Those of the bundle, with
// what changes them, are one source.
func Sources(ctx context.Context, release, bundle fs.FS, c platform.Component) ([]Source, error) {
	var own []Source
	var err error
	if c.Path != "" {
		if own, err = files(ctx, release, c.Path); err != nil {
			return nil, fmt.Errorf("the platform release: %w", err)
		}
	}
	if c.Bundle == "" {
		return own, nil
	}
	base, err := read(bundle, c.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the bundle: it has no manifests %s; build a bundle for this release: make bundle PLATFORM=DIR", c.Bundle)
	}
	if err != nil {
		return nil, fmt.Errorf("the bundle: %w", err)
	}
	objs, err := merge(flat(base), flat(own))
	name := "manifests/" + c.Bundle + " of the bundle"
	if c.Path != "" {
		name += ", changed by " + c.Path
	}
	return []Source{{Name: name, Objects: objs}}, err
}

// files are the objects of a file, a directory or a kustomization of the release.
func files(ctx context.Context, release fs.FS, name string) ([]Source, error) {
	info, err := fs.Stat(release, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() && Kustomization(release, name) == "" {
		return read(release, name)
	}
	var objs []*unstructured.Unstructured
	if info.IsDir() {
		objs, err = kustomize(ctx, release, name)
	} else {
		objs, err = decodeFile(release, name)
	}
	return []Source{{Name: name, Objects: objs}}, err
}

// read decodes every manifest of dir and below, in the order of the names.
func read(fsys fs.FS, dir string) ([]Source, error) {
	var out []Source
	err := fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !platform.IsManifest(name) {
			return err
		}
		objs, err := decodeFile(fsys, name)
		out = append(out, Source{Name: name, Objects: objs})
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s holds no YAML file", dir)
	}
	return out, err
}

func decodeFile(fsys fs.FS, name string) ([]*unstructured.Unstructured, error) {
	b, err := ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	objs, err := kube.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return objs, nil
}

// merge changes base by the documents of overlay: a document that names an object of base is merged
// into it like a patch of a kustomization, or deletes it ($patch: delete); the others are added.
func merge(base, overlay []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	out := slices.Clone(base)
	for _, patch := range overlay {
		i := slices.IndexFunc(out, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind().GroupKind() == patch.GroupVersionKind().GroupKind() && o.GetName() == patch.GetName()
		})
		switch {
		case patch.Object["$patch"] == "delete" && i >= 0:
			out = slices.Delete(out, i, i+1)
			continue
		case patch.Object["$patch"] == "delete":
			continue
		case i < 0:
			out = append(out, patch)
			continue
		}
		merged, err := mergeOne(out[i], patch)
		if err != nil {
			return nil, fmt.Errorf("merge into %s %s: %w", patch.GetKind(), patch.GetName(), err)
		}
		out[i] = merged
	}
	return out, nil
}

func mergeOne(o, patch *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o, patch = o.DeepCopy(), patch.DeepCopy()
	if scheme.Scheme.Recognizes(o.GroupVersionKind()) {
		setProtocols(o.Object)
		setProtocols(patch.Object)
	}
	into, err := kyaml.FromMap(o.Object)
	if err != nil {
		return nil, err
	}
	change, err := kyaml.FromMap(patch.Object)
	if err != nil {
		return nil, err
	}
	merged, err := merge2.Merge(change, into, kyaml.MergeOptions{ListIncreaseDirection: kyaml.MergeOptionsListPrepend})
	if err != nil {
		return nil, err
	}
	text, err := merged.MarshalJSON()
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(text)
}

// setProtocols gives ports their default protocol, which with the number tells one from another:
// merge2 loses some of those that have none.
func setProtocols(v any) {
	eachField(v, func(field string, value any) {
		if field != "ports" {
			return
		}
		for _, port := range mappings(value) {
			if port["protocol"] == nil && port["$patch"] != "replace" {
				port["protocol"] = string(corev1.ProtocolTCP)
			}
		}
	})
}
