package kube

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// leavingLimit is how long an object that is being deleted may take to be gone.
const leavingLimit = 3 * time.Minute

// awaitDeleted waits until an object that is being deleted is gone, or another one has its name.
func (c *Client) awaitDeleted(ctx context.Context, api dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	c.progress("%s is being deleted: it is made again once it is gone", describe(o))
	limited, cancel := context.WithTimeout(ctx, leavingLimit)
	defer cancel()
	return c.WaitFor(limited, describe(o)+", which is being deleted, to be gone", Poll, func(ctx context.Context) (bool, string, error) {
		live, err := api.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return ifThere(err) == nil, "", ifThere(err)
		}
		seen := "it is still there"
		if f := live.GetFinalizers(); len(f) > 0 {
			seen = "nobody has removed its finalizer " + strings.Join(f, ", ")
		}
		return live.GetUID() != o.GetUID(), seen, nil
	})
}
