package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// service is what matters here of a Service.
type service struct {
	Metadata struct{ Namespace, Name string }
	Spec     struct {
		Type              string
		LoadBalancerClass string
	}
	Status struct {
		LoadBalancer struct{ Ingress []ingress }
	}
}

// ingress is an address of a Service.
type ingress struct {
	IP string `json:"ip"`
}

// parseAddresses reads IP addresses that are separated by commas.
func parseAddresses(text string) ([]ingress, error) {
	var out []ingress
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		a, err := netip.ParseAddr(part)
		if err != nil {
			return nil, fmt.Errorf("ADDRESSES: want IP addresses, separated by commas: %w", err)
		}
		out = append(out, ingress{a.String()})
	}
	return out, nil
}

// Balance gives Services of type LoadBalancer and a class the given addresses, or, if there are
// none, those of the nodes, on which kube-proxy then answers for them, until ctx is done. It
// looks each time that every has passed; what goes wrong is logged, and tried again.
func Balance(ctx context.Context, cluster *Cluster, class string, given []ingress, every time.Duration, log *slog.Logger) {
	for {
		changed, err := balance(ctx, cluster, class, given)
		for _, name := range changed {
			log.Info("gave addresses to", "service", name)
		}
		if err != nil && ctx.Err() == nil {
			log.Error("load-balancer", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// balance looks once, and returns the Services that it has changed.
func balance(ctx context.Context, cluster *Cluster, class string, given []ingress) (changed []string, err error) {
	want := given
	if len(want) == 0 {
		if want, err = addresses(ctx, cluster); err != nil {
			return nil, err
		}
	}
	var all struct{ Items []service }
	if err := cluster.call(ctx, http.MethodGet, "/api/v1/services", "", nil, &all); err != nil {
		return nil, err
	}
	for _, s := range all.Items {
		if s.Spec.Type != "LoadBalancer" || s.Spec.LoadBalancerClass != class || slices.Equal(s.Status.LoadBalancer.Ingress, want) {
			continue
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/services/%s/status", s.Metadata.Namespace, s.Metadata.Name)
		patch := map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": want}}}
		if err := cluster.call(ctx, http.MethodPatch, path, mergePatch, patch, nil); err != nil {
			return changed, err
		}
		changed = append(changed, s.Metadata.Namespace+"/"+s.Metadata.Name)
	}
	return changed, nil
}

// addresses are those of the nodes that are ready, sorted.
func addresses(ctx context.Context, cluster *Cluster) ([]ingress, error) {
	var nodes struct {
		Items []struct {
			Status struct {
				Addresses  []struct{ Type, Address string }
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := cluster.call(ctx, http.MethodGet, "/api/v1/nodes", "", nil, &nodes); err != nil {
		return nil, err
	}
	out := []ingress{}
	for _, n := range nodes.Items {
		ready := false
		for _, c := range n.Status.Conditions {
			ready = ready || c.Type == "Ready" && c.Status == "True"
		}
		for _, a := range n.Status.Addresses {
			if ready && a.Type == "InternalIP" {
				out = append(out, ingress{a.Address})
			}
		}
	}
	slices.SortFunc(out, func(a, b ingress) int { return strings.Compare(a.IP, b.IP) })
	return out, nil
}
