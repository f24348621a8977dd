package postorchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestAPlatformThatDoesNotAnswer asks for what has no load balancer, and for what
// is not there behind one.
func TestAPlatformThatDoesNotAnswer(t *testing.T) {
	service := func(name string, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
		}
	}
	c := &kube.Client{Kubernetes: fake.NewClientset(service("pending"), service("closed", corev1.LoadBalancerIngress{IP: "127.0.0.1"}))}
	for name, says := range map[string]string{
		"pending": `Web: waited [0-9.]+m?s for an address of the Service apps/pending; last seen: its load balancer has no address yet$`,
		"closed":  `waited [0-9.]+m?s for Web \(http://web.example.org/ on 127.0.0.1:1\); last seen: .*connect: connection refused$`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := reach(ctx, c, []target{{name: "Web", url: "http://web.example.org/", namespace: "apps", service: name, port: 1}}, nil)
			require.ErrorIs(t, err, &fault.Fault{Code: CodeUnanswered})
			require.Equal(t, fault.Timeout, fault.ClassOf(err))
			require.Regexp(t, "^reach the platform through its load balancer: "+says, err.Error())
		})
	}
}

// TestAServiceWithoutALoadBalancer is not waited for.
func TestAServiceWithoutALoadBalancer(t *testing.T) {
	inside := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}}
	start := time.Now()
	err := reach(t.Context(), &kube.Client{Kubernetes: fake.NewClientset(inside)}, []target{{name: "Web", namespace: "apps", service: "web", port: 80}}, nil)
	require.Less(t, time.Since(start), 30*time.Second)
	require.EqualError(t, err, "reach the platform through its load balancer: Web: wait for an address of the Service apps/web: it is of type ClusterIP, and what is reached from outside needs type LoadBalancer")
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeNoBalancer})
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, CodeUnanswered, f.Code)
	require.Equal(t, fault.Step, f.Class)
	require.Contains(t, f.Fix, "give the Service apps/web the type LoadBalancer")
}

// TestWhatEndsAnAttemptDecidesItsClass: only what took too long is a timeout.
func TestWhatEndsAnAttemptDecidesItsClass(t *testing.T) {
	targets := []target{{name: "Web", namespace: "apps", service: "pending", port: 1}}
	forbidden := fake.NewClientset()
	forbidden.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("services"), "pending", errors.New("you may not"))
	})
	err := reach(t.Context(), &kube.Client{Kubernetes: forbidden}, targets, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeUnanswered})
	require.Equal(t, fault.Step, fault.ClassOf(err))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = reach(ctx, &kube.Client{Kubernetes: fake.NewClientset()}, targets, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeUnanswered})
	require.Equal(t, fault.Cancelled, fault.ClassOf(err), "which the step makes RUN-001")
}
