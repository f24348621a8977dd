package kube

import (
	"context"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
