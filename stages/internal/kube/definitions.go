package kube

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (c *Client) established(ctx context.Context, objs []*unstructured.Unstructured, which []int) error {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	crds, err := c.Resource(ctx, gvk, "")
	if err != nil {
		return err
	}
	for _, i := range which {
		name := objs[i].GetName()
		err := c.WaitFor(ctx, "definition "+name+" to be served", Poll, func(ctx context.Context) (bool, string, error) {
			o, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			is := func(c map[string]any) bool { return c["type"] == "Established" && c["status"] == "True" }
			return slices.ContainsFunc(Entries(o, "status", "conditions"), is), "not established yet", nil
		})
		if err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mapper.Reset()
	return nil
}
