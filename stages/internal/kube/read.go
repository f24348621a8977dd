package kube

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
)

// addressSoon is how long a load balancer may take to give an address.
const addressSoon = 2 * time.Minute

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

// UID tells a cluster from others: it is that of its namespace kube-system.
func (c *Client) UID(ctx context.Context) (string, error) {
	ns, err := Retry(ctx, c, "recognise the cluster by its namespace kube-system", func(ctx context.Context) (*corev1.Namespace, error) {
		return c.Kubernetes.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	})
	if err != nil {
		return "", err
	}
	return string(ns.UID), nil
}

// Ingress is the address, IP or host name, that a Service's load balancer gave
// it; "" when it gave none.
func Ingress(s *corev1.Service) string {
	for _, in := range s.Status.LoadBalancer.Ingress {
		if host := cmp.Or(in.IP, in.Hostname); host != "" {
			return host
		}
	}
	return ""
}

// Address looks once for the address of a Service of type LoadBalancer and
// returns it with port, "host:port"; "" while it has none. It fails with CodeNoBalancer
// where the Service is of another type.
func (c *Client) Address(ctx context.Context, namespace, name string, port int) (string, error) {
	o, err := c.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	host := Ingress(o)
	switch {
	case host == "" && o.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return "", &fault.Fault{
			Code: CodeNoBalancer, Class: fault.Step,
			Err: fmt.Errorf("it is of type %s, and what is reached from outside needs type LoadBalancer", o.Spec.Type),
			Fix: "give the Service " + namespace + "/" + name + " the type LoadBalancer (of most charts the value service.type), or name one in platform.yaml that has it; then run the same command again",
		}
	case host == "":
		return "", nil
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// WaitAddress is Address, and waits two minutes at most until there is one. The error has what
// the cluster warned of last, such as a quota or a port that is taken.
func (c *Client) WaitAddress(ctx context.Context, namespace, name string, port int) (string, error) {
	limited, cancel := context.WithTimeout(ctx, addressSoon)
	defer cancel()
	address := ""
	err := c.WaitFor(limited, fmt.Sprintf("an address of the Service %s/%s", namespace, name), Poll, func(ctx context.Context) (done bool, seen string, err error) {
		address, err = c.Address(ctx, namespace, name, port)
		return address != "", "its load balancer has no address yet", err
	})
	if errors.Is(err, &fault.Fault{Code: CodeWait}) {
		err = WithCause(ctx, err, func(ctx context.Context) string {
			return c.Warning(ctx, schema.GroupKind{Kind: "Service"}, namespace, name)
		})
	}
	return address, err
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
