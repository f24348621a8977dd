package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
)

// undoManager owns for a moment the fields that somebody set by hand, to remove them.
const undoManager = FieldManager + "-undo"

// kubectl is what the names of kubectl's field managers begin with.
const kubectl = "kubectl"

// byHand lists the field managers of an object that are a person's with kubectl: applying
// leaves alone what they have set and the manifest does not have. A restart of pods is
// not to be undone; scaling Rescale undoes.
func byHand(o *unstructured.Unstructured) []string {
	var out []string
	for _, f := range o.GetManagedFields() {
		if f.Subresource != "" || f.Operation != metav1.ManagedFieldsOperationUpdate || f.FieldsV1 == nil {
			continue
		}
		if strings.HasPrefix(f.Manager, kubectl) && f.Manager != "kubectl-rollout" && !slices.Contains(out, f.Manager) {
			out = append(out, f.Manager)
		}
	}
	return out
}

// undo removes what somebody set by hand in an object, and returns it as it is then; nil
// if nobody did.
func undo(ctx context.Context, api dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	for {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		managers := byHand(o)
		if len(managers) == 0 {
			return nil, nil
		}
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(o, sets.New(managers...), undoManager)
		if err != nil {
			return nil, fmt.Errorf("find manual changes: %w", err)
		}
		_, err = api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if apierrors.IsConflict(err) && ctx.Err() == nil { // somebody wrote to it in between
			continue
		}
		if err != nil {
			return nil, err
		}
		nothing := &unstructured.Unstructured{}
		nothing.SetGroupVersionKind(o.GroupVersionKind())
		nothing.SetNamespace(o.GetNamespace())
		nothing.SetName(name)
		return api.Apply(ctx, name, nothing, metav1.ApplyOptions{FieldManager: undoManager, Force: true})
	}
}

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
