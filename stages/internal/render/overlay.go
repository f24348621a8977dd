package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
)

// merge changes base by the documents of overlay: one that names an object of
// base is merged into it as a patch of a kustomization is, or deletes it ($patch: delete);
// the others are added.
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
