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

// kubectl is what the names of kubectl's field managers begin with.
const kubectl = "kubectl"

// byHand lists the field managers of an object, which may be nil, that are a person's with kubectl:
// applying leaves alone what they have set and the manifest does not have. A restart of pods is
// not to be undone; a component's step undoes scaling itself.
func byHand(o *unstructured.Unstructured) []string {
	if o == nil {
		return nil
	}
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

// takeOver makes the fields of an object that field managers wrote those that Slipway applies: what
// of them the next apply does not have, it removes.
func takeOver(ctx context.Context, api dynamic.ResourceInterface, name string, managers ...string) error {
	for {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return IgnoreNotFound(err)
		}
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(o, sets.New(managers...), FieldManager)
		if err != nil {
			return fmt.Errorf("find the fields of %s: %w", name, err)
		}
		if patch == nil {
			return nil
		}
		_, err = api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if !apierrors.IsConflict(err) || ctx.Err() != nil { // else somebody wrote to it in between
			return err
		}
	}
}

// Extra is the merge patch that removes from a map of live what the map of obj does not have;
// nil: there is nothing. Lists are left alone: whoever applies a list owns all of it.
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

// Yield gives up the fields that Slipway owns in objects that somebody else applies by now, who can
// remove fields then. Nothing else of the objects changes, and objects that nobody else applies
// stay as they are. Objects name their namespaces.
func (c *Client) Yield(ctx context.Context, objs []*unstructured.Unstructured) error {
	for _, o := range objs {
		if err := c.yield(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) yield(ctx context.Context, o *unstructured.Unstructured) error {
	live, err := c.Live(ctx, MemberOf(o))
	if err != nil || live == nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && f.Manager == FieldManager
	})
	applied := slices.ContainsFunc(left, func(f metav1.ManagedFieldsEntry) bool { return f.Operation == metav1.ManagedFieldsOperationApply })
	if !applied || len(left) == len(live.GetManagedFields()) {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": live.GetResourceVersion(), "managedFields": left}}
	err = c.PatchObject(ctx, "give up the fields of "+describe(o), o, patch)
	if apierrors.IsConflict(err) && ctx.Err() == nil { // somebody wrote to it in between
		return c.yield(ctx, o)
	}
	return err
}
