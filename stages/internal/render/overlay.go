package render

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// merge changes base by the documents of overlay: one that names an object of
// base is merged into it, as a strategic merge patch where the kind is one of
// Kubernetes' own, or deletes it ($patch: delete); the others are added.
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
	typed, err := scheme.Scheme.New(patch.GroupVersionKind())
	if err != nil { // not one of Kubernetes' own kinds
		return &unstructured.Unstructured{Object: mergeMaps(o.Object, patch.Object)}, nil
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	into, change := o.DeepCopy().Object, patch.DeepCopy().Object
	identify(into, change)
	m, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(into, change, twoKeys{schema})
	if err != nil {
		return nil, err
	}
	eachItem("", map[string]any(m), func(_ string, item map[string]any) { delete(item, bothKeys) })
	return &unstructured.Unstructured{Object: m}, nil
}

// mergeMaps is a JSON merge patch.
func mergeMaps(into, patch map[string]any) map[string]any {
	out := maps.Clone(into)
	for k, v := range patch {
		old, isMap := out[k].(map[string]any)
		if change, ok := v.(map[string]any); ok && isMap {
			v = mergeMaps(old, change)
		}
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}
