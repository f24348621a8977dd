package kube

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// established waits until the API serves the definitions' kinds.
func (c *Client) established(ctx context.Context, objs []*unstructured.Unstructured, which []int) error {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	crds, err := c.Resource(ctx, gvk, "")
	if err != nil {
		return err
	}
	for _, i := range which {
		name := objs[i].GetName()
		d := &definition{crds: crds, name: name}
		if err := c.WaitFor(ctx, "definition "+name+" to be served", Poll, d.served); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mapper.Reset()
	return nil
}

// definition is one that is waited for.
type definition struct {
	crds     dynamic.ResourceInterface
	name     string
	accepted time.Time // when it was first seen to have its names, and not to be served
	nudged   bool
}

// overdue is how long the API server may take to serve a definition whose names it
// has accepted; it takes milliseconds.
const overdue = 2 * time.Second

// served tells whether the API serves the definition's kind.
func (d *definition) served(ctx context.Context) (bool, string, error) {
	o, err := d.crds.Get(ctx, d.name, metav1.GetOptions{})
	switch {
	case err != nil:
		return false, "", err
	case condition(o, "Established") == "True":
		return true, "", nil
	case condition(o, "NamesAccepted") != "True":
		return false, "not established yet", nil
	case d.accepted.IsZero():
		d.accepted = time.Now()
	case !d.nudged && time.Since(d.accepted) >= overdue:
		err := d.nudge(ctx)
		d.nudged = err == nil
		return false, "not established yet", err
	}
	return false, "not established yet", nil
}

// nudge changes the definition, and changes it back. An API server that was killed
// between accepting a definition's names and establishing it does the latter only
// when it sees the definition change: by itself after five minutes, when its
// informers look at everything again (k8s.io/apiextensions-apiserver v0.37.2,
// pkg/apiserver/customresource_handler.go, updateCustomResourceDefinition).
func (d *definition) nudge(ctx context.Context) error {
	for _, value := range []string{`"true"`, "null"} {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"slipway.sh/nudge":%s}}}`, value)
		_, err := d.crds.Patch(ctx, d.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager})
		if err != nil {
			return fmt.Errorf("have definition %s established: %w", d.name, err)
		}
	}
	return nil
}
