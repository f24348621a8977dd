package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ObjectsOf is the name of the Set of what a component has in the cluster.
func ObjectsOf(component string) string { return component + "-objects" }

// JobsOf is the name of the ConfigMap in SystemNamespace of the Jobs of a component that have
// completed: by JobKey, the digest of what each did.
func JobsOf(component string) string { return component + "-jobs" }

// JobKey is a Job's key there.
func JobKey(job metav1.Object) string { return job.GetNamespace() + "." + job.GetName() }

// Forget deletes what is noted of a component that is gone, or somebody else's by now.
func (c *Client) Forget(ctx context.Context, deployment, component string) error {
	maps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, name := range []string{ObjectsOf(component), JobsOf(component)} {
		if _, err := c.DeleteOurs(ctx, Member{maps, SystemNamespace, name}, deployment, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}
