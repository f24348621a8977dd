package readiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// addressSoon is how long a load balancer may take to give an address.
const addressSoon = 2 * time.Minute

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

// WaitAddress waits, two minutes at most, for the address of a Service of type LoadBalancer and
// returns it with port, "host:port". It fails with CodeNoBalancer where the Service is of another
// type. The error of a wait has what the cluster warned of last, such as a quota or a port that is
// taken.
func WaitAddress(ctx context.Context, c *kube.Client, namespace, name string, port int) (string, error) {
	limited, cancel := context.WithTimeout(ctx, addressSoon)
	defer cancel()
	host := ""
	err := c.WaitFor(limited, fmt.Sprintf("an address of the Service %s/%s", namespace, name), kube.Poll, func(ctx context.Context) (done bool, seen string, err error) {
		o, err := c.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		if host = Ingress(o); host == "" && o.Spec.Type != corev1.ServiceTypeLoadBalancer {
			return false, "", &fault.Fault{
				Code: kube.CodeNoBalancer, Class: fault.Step,
				Err: fmt.Errorf("it is of type %s, and what is reached from outside needs type LoadBalancer", o.Spec.Type),
				Fix: "give the Service " + namespace + "/" + name + " the type LoadBalancer (of most charts the value service.type), or name one in platform.yaml that has it; then run the same command again",
			}
		}
		return host != "", "its load balancer has no address yet", nil
	})
	if errors.Is(err, &fault.Fault{Code: kube.CodeWait}) {
		err = kube.WithCause(ctx, err, func(ctx context.Context) string {
			return Warning(ctx, c, schema.GroupKind{Kind: "Service"}, namespace, name)
		})
	}
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
