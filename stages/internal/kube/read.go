package kube

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Secret reads a Secret; it is nil without an error when there is none.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	o, err := Retry(ctx, c, "get secret "+namespace+"/"+name, func(ctx context.Context) (*corev1.Secret, error) {
		return c.Kubernetes.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// Namespace reads a namespace; it is nil without an error when there is none.
func (c *Client) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	o, err := Retry(ctx, c, "get namespace "+name, func(ctx context.Context) (*corev1.Namespace, error) {
		return c.Kubernetes.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, IgnoreNotFound(err)
	}
	return o, nil
}

// UID tells a cluster from others: it is the UID of its namespace kube-system.
func (c *Client) UID(ctx context.Context) (string, error) {
	ns, err := Retry(ctx, c, "recognise the cluster by its namespace kube-system", func(ctx context.Context) (*corev1.Namespace, error) {
		return c.Kubernetes.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	})
	if err != nil {
		return "", err
	}
	return string(ns.UID), nil
}

// The deployment's CA is in the namespace SystemNamespace, in a Secret and, for
// those who must not see its key, in a ConfigMap.
const (
	CA    = "slipway-ca" // name of both
	CAKey = "ca.crt"     // key of the ConfigMap with the certificate
)

// Roots returns the certificates for verifying those of the platform: the system's
// roots and, if there is one, the deployment's CA.
func Roots(ctx context.Context, c *Client) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	o, err := Retry(ctx, c, "read the deployment's CA", func(ctx context.Context) (*corev1.ConfigMap, error) {
		return c.Kubernetes.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, CA, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return pool, nil
	}
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM([]byte(o.Data[CAKey])) {
		return nil, fmt.Errorf("configmap %s/%s holds no certificate under %s", SystemNamespace, CA, CAKey)
	}
	return pool, nil
}

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
