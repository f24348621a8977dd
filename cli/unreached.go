package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeUnreached: a link, check or gate names a Service that the release does not have, or
// not so that it can be asked.
const codeUnreached fault.Code = "PLT-016"

// services are those that a platform release renders to.
type services struct {
	by map[string]service // by "namespace/name"
	// all says that the cluster will have no others: everything is rendered, and nothing is
	// for a controller of somebody's, which might make some.
	all bool
}

type service struct {
	kind, from string
	ports      []string
}

// unreached fails with codeUnreached, and names each link, check and gate of the components
// that are not off whose Service will not answer.
func unreached(r *platform.Release, off []string, parts []contract.Rendered) error {
	have := servicesOf(parts)
	var problems []error
	look := func(what, component, ref string, outside bool) {
		if ref == "" || slices.Contains(off, component) {
			return
		}
		if err := have.reach(ref, outside); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, l := range r.Links {
		look("link "+l.Name, l.Component, l.Service, true)
	}
	for _, c := range r.Checks {
		look("check "+c.Name, c.Component, c.Service, true)
	}
	for _, c := range r.Components {
		for _, g := range c.Ready {
			what := "component " + c.Name + ", gate " + g.Describe()
			look(what, c.Name, g.Endpoint, false)
			if g.HTTP != nil {
				look(what, c.Name, g.HTTP.Service, false)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeUnreached, Class: fault.Usage, Op: fmt.Sprintf("find the Services that %s %s asks", r.Name, r.Version), Err: errors.Join(problems...),
		Fix: "name a Service that a component has; for links and checks one of type LoadBalancer: of most charts the value service.type. slipway platform render shows what there is",
	}
}

// reach says why the Service "namespace/name:port" will not be reached; outside asks for a
// load balancer.
func (s services) reach(ref string, outside bool) error {
	namespace, name, port, err := platform.ParseService(ref)
	if err != nil {
		return err
	}
	id := namespace + "/" + name
	found, ok := s.by[id]
	switch {
	case !ok && s.all:
		return fmt.Errorf("no component has a Service %s", id)
	case !ok:
		return nil
	case outside && found.kind != "LoadBalancer":
		return fmt.Errorf("the Service %s (%s) is of type %s, and is asked through a load balancer", id, found.from, found.kind)
	case len(found.ports) > 0 && !slices.Contains(found.ports, strconv.Itoa(port)):
		return fmt.Errorf("the Service %s (%s) has no port %d, only %s", id, found.from, port, strings.Join(found.ports, ", "))
	}
	return nil
}

func servicesOf(parts []contract.Rendered) services {
	out := services{by: map[string]service{}, all: true}
	for _, p := range parts {
		out.all = out.all && p.Err == nil
		for _, o := range p.Objects {
			version, _ := o["apiVersion"].(string)
			out.all = out.all && kubernetesOwn(version)
			if version != "v1" || o["kind"] != "Service" {
				continue
			}
			meta, _ := o["metadata"].(map[string]any)
			spec, _ := o["spec"].(map[string]any)
			s := service{kind: "ClusterIP", from: "component " + p.Component + ", " + p.File}
			if kind, ok := spec["type"].(string); ok && kind != "" {
				s.kind = kind
			}
			ports, _ := spec["ports"].([]any)
			for _, entry := range ports {
				if m, ok := entry.(map[string]any); ok {
					s.ports = append(s.ports, fmt.Sprint(m["port"]))
				}
			}
			out.by[fmt.Sprint(meta["namespace"], "/", meta["name"])] = s
		}
	}
	return out
}

// kubernetesOwn reports whether objects of that version are for controllers of Kubernetes'
// own. A definition of a kind is not: somebody's is about to come.
func kubernetesOwn(version string) bool {
	group, _, found := strings.Cut(version, "/")
	if !found || !strings.Contains(group, ".") || group == "rbac.authorization.k8s.io" {
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && strings.Count(group, ".") == 2 && group != "apiextensions.k8s.io"
}
