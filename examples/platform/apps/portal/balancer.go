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

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

type ingress struct {
	IP string `json:"ip"`
}

// balanceAll gives Services of type LoadBalancer and the class CLASS the ADDRESSES, separated by
// commas, or those of the nodes, on which kube-proxy then answers for them.
func balanceAll(ctx context.Context, env *web.Env, log *slog.Logger) error {
	class, given := env.Text("CLASS", ""), env.Optional("ADDRESSES")
	if err := env.Err(); err != nil {
		return err
	}
	addresses, err := parseAddresses(given)
	if err != nil {
		return err
	}
	c, err := inCluster(env)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		changed, err := balance(ctx, c, class, addresses)
		for _, name := range changed {
			log.Info("gave addresses to", "service", name)
		}
		if err != nil && ctx.Err() == nil {
			log.Error("load-balancer", "error", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
	return nil
}

func parseAddresses(text string) (out []ingress, err error) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, err := netip.ParseAddr(part)
		if err != nil {
			return nil, fmt.Errorf("ADDRESSES: %w", err)
		}
		out = append(out, ingress{a.String()})
	}
	return out, nil
}

// balance looks once, and returns the Services that it has changed.
func balance(ctx context.Context, c *cluster, class string, want []ingress) (changed []string, err error) {
	if len(want) == 0 {
		if want, err = nodeAddresses(ctx, c); err != nil {
			return nil, err
		}
	}
	var all struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
			Spec     struct{ Type, LoadBalancerClass string }
			Status   struct {
				LoadBalancer struct{ Ingress []ingress }
			}
		}
	}
	if err := c.call(ctx, http.MethodGet, "/api/v1/services", nil, &all); err != nil {
		return nil, err
	}
	for _, s := range all.Items {
		if s.Spec.Type != "LoadBalancer" || s.Spec.LoadBalancerClass != class || slices.Equal(s.Status.LoadBalancer.Ingress, want) {
			continue
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/services/%s/status", s.Metadata.Namespace, s.Metadata.Name)
		patch := map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": want}}}
		if err := c.call(ctx, http.MethodPatch, path, patch, nil); err != nil {
			return changed, err
		}
		changed = append(changed, s.Metadata.Namespace+"/"+s.Metadata.Name)
	}
	return changed, nil
}

// nodeAddresses are those of the nodes that are ready, sorted.
func nodeAddresses(ctx context.Context, c *cluster) ([]ingress, error) {
	var nodes struct {
		Items []struct {
			Status struct {
				Addresses  []struct{ Type, Address string }
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := c.call(ctx, http.MethodGet, "/api/v1/nodes", nil, &nodes); err != nil {
		return nil, err
	}
	out := []ingress{}
	for _, n := range nodes.Items {
		if !slices.Contains(n.Status.Conditions, struct{ Type, Status string }{"Ready", "True"}) {
			continue
		}
		for _, a := range n.Status.Addresses {
			if a.Type == "InternalIP" {
				out = append(out, ingress{a.Address})
			}
		}
	}
	slices.SortFunc(out, func(a, b ingress) int { return strings.Compare(a.IP, b.IP) })
	return out, nil
}
