// Package trust is where the certificates are that the platform's clients trust.
package trust

import (
	"context"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/kube"
)

// What holds the deployment's CA in the namespace kube.SystemNamespace: a Secret,
// and a ConfigMap for whoever must not see the key.
const (
	CA    = "slipway-ca" // name of both
	CAKey = "ca.crt"     // of the ConfigMap: what clients trust
)

// Roots is what the platform's certificates are verified against: the system's
// roots and those of the deployment.
func Roots(ctx context.Context, c *kube.Client) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	var o *corev1.ConfigMap
	err = c.Retry(ctx, "read the deployment's CA", func(ctx context.Context) (err error) {
		o, err = c.Kubernetes.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, CA, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM([]byte(o.Data[CAKey])) {
		return nil, fmt.Errorf("configmap %s/%s holds no certificate under %s", kube.SystemNamespace, CA, CAKey)
	}
	return pool, nil
}
