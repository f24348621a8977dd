package main

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	"k8s.io/cloud-provider/controllers/service"
	"k8s.io/component-base/featuregate"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
)

// ownPorts are the TCP ports of the node itself: a Service there would cut it off.
func ownPorts() map[int32]string {
	return map[int32]string{
		apiPort:    "the API server",
		healthPort: "the node's health endpoint",
		10250:      "the kubelet",
	}
}

// balancer gives Services of type LoadBalancer the container's own address,
// where kube-proxy then serves their ports. Two Services cannot have the same
// port: the Service that already has it keeps it; if neither does, the older one gets it.
type balancer struct {
	address  string // of the container; another one after each restart
	services corelisters.ServiceLister
}

// runBalancer runs the cloud controller for Services until ctx ends, and calls ready once
// it is set up.
func runBalancer(ctx context.Context, client kubernetes.Interface, cluster string, address net.IP, ready func()) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	services, nodes := factory.Core().V1().Services(), factory.Core().V1().Nodes()
	b := &balancer{address: address.String(), services: services.Lister()}
	c, err := service.New(cloud{balancer: b}, client, services, nodes, cluster, featuregate.NewFeatureGate())
	if err != nil {
		return fmt.Errorf("set up the controller of LoadBalancer Services: %w", err)
	}
	factory.Start(ctx.Done())
	ready()
	c.Run(ctx, 2, controllersmetrics.NewControllerManagerMetrics("slipway-node"))
	factory.Shutdown()
	return nil
}

// GetLoadBalancer says that there is one for every Service that was given the
// address.
func (b *balancer) GetLoadBalancer(_ context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	return s.Status.LoadBalancer.DeepCopy(), len(s.Status.LoadBalancer.Ingress) > 0, nil
}

// GetLoadBalancerName is only shown.
func (b *balancer) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return s.Namespace + "/" + s.Name
}

// EnsureLoadBalancer answers with the container's address, or says which other
// Service has the port; it is asked again after some seconds then.
func (b *balancer) EnsureLoadBalancer(_ context.Context, _ string, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	all, err := b.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	if why := collision(s, all); why != "" {
		return nil, api.NewRetryError(why, 10*time.Second)
	}
	vip := corev1.LoadBalancerIPModeVIP
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: b.address, IPMode: &vip}}}, nil
}

// UpdateLoadBalancer has nothing to do: there is one node.
func (b *balancer) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

// EnsureLoadBalancerDeleted has nothing to do: kube-proxy stops serving the
// address by itself.
func (b *balancer) EnsureLoadBalancerDeleted(context.Context, string, *corev1.Service) error {
	return nil
}

// collision says why s cannot have its ports, or "".
func collision(s *corev1.Service, all []*corev1.Service) string {
	own := ownPorts()
	for _, p := range s.Spec.Ports {
		if user, ok := own[p.Port]; ok && p.Protocol == corev1.ProtocolTCP {
			return fmt.Sprintf("port %d belongs to %s of this node: give the Service another port", p.Port, user)
		}
		for _, other := range all {
			if other.UID == s.UID || !balanced(other) || !goesFirst(other, s) {
				continue
			}
			for _, q := range other.Spec.Ports {
				if q.Port == p.Port && q.Protocol == p.Protocol {
					return fmt.Sprintf("port %d/%s is taken by Service %s/%s of type LoadBalancer: give one of them another port", p.Port, p.Protocol, other.Namespace, other.Name)
				}
			}
		}
	}
	return ""
}

// balanced reports whether a Service wants an address of ours.
func balanced(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil && s.DeletionTimestamp == nil
}

// goesFirst reports whether a has the better right to a port than b.
func goesFirst(a, b *corev1.Service) bool {
	hasA, hasB := len(a.Status.LoadBalancer.Ingress) > 0, len(b.Status.LoadBalancer.Ingress) > 0
	if hasA != hasB {
		return hasA
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// cloud is the provider that the upstream controller asks for its balancer; it
// asks for nothing else, so the rest of the interface stays nil.
type cloud struct {
	cloudprovider.Interface
	balancer *balancer
}

// LoadBalancer returns the balancer.
func (c cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c.balancer, true }

// ProviderName is only shown.
func (c cloud) ProviderName() string { return "slipway" }
