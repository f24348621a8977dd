package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Extra is the merge patch that removes from a map of live what the map of obj does not have;
// nil: it has no more. Lists are left alone: who applies one has it whole.
func Extra(live, obj map[string]any) map[string]any {
	var out map[string]any
	set := func(key string, value any) {
		if out == nil {
			out = map[string]any{}
		}
		out[key] = value
	}
	for key, value := range live {
		want, has := obj[key]
		if !has {
			set(key, nil)
			continue
		}
		there, is := value.(map[string]any)
		part, both := want.(map[string]any)
		if below := Extra(there, part); is && both && below != nil {
			set(key, below)
		}
	}
	return out
}

func patched(ctx context.Context, api dynamic.ResourceInterface, name string, patch map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the patch of %s: %w", name, err)
	}
	return api.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: FieldManager})
}

// take removes from an object what a merge patch removes, which does nothing else.
func take(o, patch map[string]any) {
	for key, below := range patch {
		part, is := o[key].(map[string]any)
		if rest, more := below.(map[string]any); is && more {
			take(part, rest)
			continue
		}
		delete(o, key)
	}
}
