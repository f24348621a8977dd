package kube

import (
	"context"
	"encoding/base64"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PullSecret, in each namespace with pods, has the account with which the nodes of a cluster
// that is not Slipway's pull from the registry. It is also who writes to service accounts: that
// one of them names it does not make it Slipway's.
const PullSecret = "slipway-registry"

const defaultAccount = "default"

// SetPullSecret keeps a docker config.json in a namespace as PullSecret, and has pods there pull with
// it that have no service account of their own. Infrastructure/ownership has seen that the Secret is
// not somebody else's.
func (c *Client) SetPullSecret(ctx context.Context, deployment, namespace string, config []byte) error {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeDockerConfigJson),
		"data": map[string]any{corev1.DockerConfigJsonKey: base64.StdEncoding.EncodeToString(config)},
	}}
	o.SetName(PullSecret)
	o.SetNamespace(namespace)
	o.SetLabels(Labels(deployment))
	if _, err := c.Apply(ctx, []*unstructured.Unstructured{o}, ApplyOptions{}); err != nil {
		return err
	}
	if c.Plan == nil { // where the namespace may not be there yet
		if err := c.WaitDefaultAccount(ctx, namespace); err != nil {
			return err
		}
	}
	return c.pullsWith(ctx, namespace, func(names []corev1.LocalObjectReference) []corev1.LocalObjectReference {
		if slices.Contains(names, corev1.LocalObjectReference{Name: PullSecret}) {
			return names
		}
		return append(names, corev1.LocalObjectReference{Name: PullSecret})
	})
}

// UnsetPullSecret takes back what SetPullSecret has done for a deployment.
func (c *Client) UnsetPullSecret(ctx context.Context, deployment, namespace string) error {
	o, err := c.Secret(ctx, namespace, PullSecret)
	if err != nil {
		return err
	}
	if o != nil && DeploymentOf(o.Labels) != deployment {
		return nil
	}
	if o != nil {
		err := c.Retry(ctx, "delete secret "+namespace+"/"+PullSecret, func(ctx context.Context) error {
			return c.Kubernetes.CoreV1().Secrets(namespace).Delete(ctx, PullSecret, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.pullsWith(ctx, namespace, func(names []corev1.LocalObjectReference) []corev1.LocalObjectReference {
		return slices.DeleteFunc(slices.Clone(names), func(r corev1.LocalObjectReference) bool { return r.Name == PullSecret })
	})
}

// pullsWith changes the names of the Secrets with which the pods of a namespace's default
// service account pull. It does nothing if there is no such account.
func (c *Client) pullsWith(ctx context.Context, namespace string, change func([]corev1.LocalObjectReference) []corev1.LocalObjectReference) error {
	api := c.Kubernetes.CoreV1().ServiceAccounts(namespace)
	return c.Retry(ctx, "change the default service account of namespace "+namespace, func(ctx context.Context) error {
		for {
			o, err := api.Get(ctx, defaultAccount, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			names := change(o.ImagePullSecrets)
			if slices.Equal(names, o.ImagePullSecrets) {
				return nil
			}
			o.ImagePullSecrets = names
			_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: PullSecret})
			if !apierrors.IsConflict(err) || ctx.Err() != nil { // else somebody wrote to it in between
				return err
			}
		}
	})
}

// WaitDefaultAccount waits until a new namespace has the service account that pods use, which
// a controller makes.
func (c *Client) WaitDefaultAccount(ctx context.Context, namespace string) error {
	return c.WaitFor(ctx, "the default service account of namespace "+namespace, Poll, func(ctx context.Context) (bool, string, error) {
		_, err := c.Kubernetes.CoreV1().ServiceAccounts(namespace).Get(ctx, defaultAccount, metav1.GetOptions{})
		return err == nil, "", err
	})
}
