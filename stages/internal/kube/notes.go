package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Notes returns the data of a ConfigMap in which Slipway keeps something in the cluster, of
// that name in SystemNamespace; nil if it is not there. what says what is read, for errors.
func (c *Client) Notes(ctx context.Context, name, what string) (map[string]string, error) {
	var data map[string]string
	err := c.Retry(ctx, "read "+what, func(ctx context.Context) error {
		o, err := c.Kubernetes.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if data = o.Data; data == nil {
			data = map[string]string{}
		}
		return nil
	})
	return data, ifThere(err)
}

// KeepNotes writes all data of that ConfigMap, as one of the deployment's. In a dry run it
// fails if that would change anything.
func (c *Client) KeepNotes(ctx context.Context, deployment, name string, data map[string]string) error {
	values := make(map[string]any, len(data))
	for k, v := range data {
		values[k] = v
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": SystemNamespace},
		"data":     values,
	}}
	o.SetLabels(Labels(deployment))
	_, err := c.Apply(ctx, []*unstructured.Unstructured{o}, ApplyOptions{Force: true})
	return err
}
