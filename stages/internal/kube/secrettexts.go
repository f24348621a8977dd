package kube

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// shortestSecret is how long a value of a Secret is that is looked for in texts.
const shortestSecret = 8

// IsSecret reports whether a value of a Secret is looked for in texts: not a user name or an
// address.
func IsSecret(key, value string) bool {
	return len(value) >= shortestSecret && !slices.Contains([]string{"username", "email", "type", "url", "name", "server"}, key)
}

// HideSecrets hands on what is secret in the Secrets of a deployment. A program of the platform
// may print it, and what pods and Applications say is in errors, reports and packages.
//
// It reads the deployment's namespaces only: elsewhere, anyone can give a Secret its label and
// have words of Slipway's own hidden.
func (c *Client) HideSecrets(ctx context.Context, deployment string, hide func(string)) error {
	ours := metav1.ListOptions{LabelSelector: DeploymentLabel + "=" + deployment}
	namespaces, err := Retry(ctx, c, "list namespaces", func(ctx context.Context) (*corev1.NamespaceList, error) {
		return c.Kubernetes.CoreV1().Namespaces().List(ctx, ours)
	})
	if err != nil {
		return err
	}
	for _, n := range namespaces.Items {
		secrets, err := Retry(ctx, c, "list secrets", func(ctx context.Context) (*corev1.SecretList, error) {
			return c.Kubernetes.CoreV1().Secrets(n.Name).List(ctx, ours)
		})
		if err != nil {
			return err
		}
		for _, s := range secrets.Items {
			for key, value := range s.Data {
				if s.Type != NoteType && IsSecret(key, string(value)) {
					hide(string(value))
				}
			}
		}
	}
	return nil
}

// leastSecret is the length of the shortest value of a Secret that is taken for a secret whatever
// its key is called: a shorter one may be a word, such as a user name.
const leastSecret = 12

// SecretsOf are the values of the Secrets that a pod has in its variables and files, which its
// programs may write to their logs.
func (c *Client) SecretsOf(ctx context.Context, p *corev1.Pod) (*redact.Secrets, error) {
	names := map[string]bool{}
	for _, one := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, from := range one.EnvFrom {
			if from.SecretRef != nil {
				names[from.SecretRef.Name] = true
			}
		}
		for _, v := range one.Env {
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
				names[v.ValueFrom.SecretKeyRef.Name] = true
			}
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.Secret != nil {
			names[v.Secret.SecretName] = true
		}
		if v.Projected == nil {
			continue
		}
		for _, from := range v.Projected.Sources {
			if from.Secret != nil {
				names[from.Secret.Name] = true
			}
		}
	}
	out := &redact.Secrets{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s, err := c.Secret(ctx, p.Namespace, name)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		for key, value := range s.Data {
			if text := string(value); len(text) >= leastSecret || redact.LooksSecret(key, text) {
				out.Add(text)
			}
		}
	}
	return out, nil
}
