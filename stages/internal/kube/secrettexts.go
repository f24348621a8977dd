package kube

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
				if s.Type != helmRecord && IsSecret(key, string(value)) {
					hide(string(value))
				}
			}
		}
	}
	return nil
}

// helmRecord is the type of the Secrets in which Helm keeps its releases.
const helmRecord corev1.SecretType = "helm.sh/release.v1"
