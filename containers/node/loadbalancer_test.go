package main

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func balancedService(name string, age time.Duration, ports ...int32) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-age)),
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p, Protocol: corev1.ProtocolTCP})
	}
	return s
}

func holding(s *corev1.Service) *corev1.Service {
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.87.0.9"}}
	return s
}

func TestCollision(t *testing.T) {
	old, young := balancedService("old", time.Hour, 80, 443), balancedService("young", time.Minute, 443)
	other := balancedService("other", 2*time.Hour, 8080)
	all := []*corev1.Service{old, young, other}

	require.Empty(t, collision(old, all), "the older one gets the port")
	require.Equal(t, "port 443/TCP is taken by Service shop/old of type LoadBalancer: give one of them another port", collision(young, all))
	require.Empty(t, collision(other, all))

	holding(young)
	require.Empty(t, collision(young, all), "the one that has the port keeps it")
	require.Contains(t, collision(old, all), "shop/young")

	udp := balancedService("udp", 0, 443)
	udp.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	require.Empty(t, collision(udp, all), "another protocol is another port")
	udp.Spec.Ports[0].Port = 6443
	require.Empty(t, collision(udp, all), "the API server's is one of TCP")

	young.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	require.Empty(t, collision(old, all), "a Service that goes away gives the port free")

	internal := balancedService("internal", 3*time.Hour, 80)
	internal.Spec.Type = corev1.ServiceTypeClusterIP
	require.Empty(t, collision(old, append(all, internal)))

	require.Contains(t, collision(balancedService("api", 0, 6443), nil), "belongs to the API server")
}

func TestBalancerGivesTheAddressOfThisStartAndReportsCollisions(t *testing.T) {
	last := balancedService("web", time.Hour, 80)
	last.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.87.0.2"}}
	client := fake.NewClientset(last, balancedService("second", time.Minute, 80))

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	h := newHealth(time.Now())
	running.Go(func() {
		_ = runBalancer(ctx, client, "test", net.ParseIP("10.87.0.9"), func() { h.set(partBalancer, "ready", "") })
	})
	defer running.Wait()
	defer cancel()

	require.Eventually(t, func() bool {
		s, err := client.CoreV1().Services("shop").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && len(s.Status.LoadBalancer.Ingress) == 1 && s.Status.LoadBalancer.Ingress[0].IP == "10.87.0.9"
	}, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, "ready", h.report().Parts[partBalancer].State)
	require.Eventually(t, func() bool {
		events, err := client.CoreV1().Events("shop").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "second" && e.Reason == "SyncLoadBalancerFailed" {
				require.Contains(t, e.Message, "port 80/TCP is taken by Service shop/web")
				return true
			}
		}
		return false
	}, 20*time.Second, 5*time.Millisecond)
	s, err := client.CoreV1().Services("shop").Get(ctx, "second", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, s.Status.LoadBalancer.Ingress)
}
