package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// gates calls do with each gate of the components and tests that are not off: whose it is, and
// the field of platform.yaml that it is in.
func gates(r *platform.Release, off []string, do func(whose, field string, g platform.Await)) {
	each := func(component, whose, field string, all []platform.Await) {
		if slices.Contains(off, component) {
			return
		}
		for i, g := range all {
			do(whose+", gate "+g.Describe(), fmt.Sprintf("%s.ready[%d]", field, i), g)
		}
	}
	for i, c := range r.Components {
		each(c.Name, "component "+c.Name, fmt.Sprintf("components[%d]", i), c.Ready)
	}
	for i, t := range r.Tests {
		each(t.Component, "test "+t.Name, fmt.Sprintf("tests[%d]", i), t.Ready)
	}
}

// checkGates fails with codeNoTarget, and names each gate of what is not off that waits for an object
// which nothing makes. Gates on Services are for checkServices.
func checkGates(r *platform.Release, off []string, have *releaseObjects) error {
	var list []error
	gates(r, off, func(whose, in string, g platform.Await) {
		field, o, ok := gateTarget(g)
		if !ok || have.objects[idOf(o)] || !byHand(o) {
			return
		}
		if !have.complete(o.Namespace) {
			have.addUnknown(o.Namespace, o.Kind+" "+o.Namespace+"/"+o.Name)
			return
		}
		at := contract.Place(r.Path(platform.File), r.Line(in+"."+field))
		article := "a"
		if o.Kind == "Ingress" {
			article = "an"
		}
		list = append(list, fmt.Errorf("%s (%s): no component has %s %s %s/%s", whose, at, article, o.Kind, o.Namespace, o.Name))
	})
	if len(list) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeNoTarget, Class: fault.Usage, Op: fmt.Sprintf("find what the gates of %s %s wait for", r.Name, r.Version), Err: listed(list),
		Fix: "name an object that a component has: slipway platform render shows them",
	}
}

// gateTarget is the object that a gate waits for, and the field that names it.
func gateTarget(g platform.Await) (field string, o platform.Object, ok bool) {
	ref := ""
	switch {
	case g.Rollout != "":
		field, ref = "rollout", g.Rollout
	case g.Job != "":
		field, ref = "job", "batch/v1/Job "+g.Job
	case g.Condition != nil:
		field, ref = "condition.object", g.Condition.Object
	case g.CEL != nil:
		field, ref = "cel.object", g.CEL.Object
	}
	o, err := platform.ParseObject(ref)
	return field, o, err == nil
}

// byHand reports whether an object is of a kind of Kubernetes' own of which there is
// nothing but what somebody writes down. Pods, claims and whatever else Kubernetes makes of
// those are not, nor Secrets and ConfigMaps: Jobs make these, and so do others in the cluster.
func byHand(o platform.Object) bool {
	return slices.Contains([]string{
		"apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "batch/CronJob", "/Service",
		"networking.k8s.io/Ingress", "autoscaling/HorizontalPodAutoscaler", "policy/PodDisruptionBudget",
	}, kindOf(o))
}

// codeNoTarget: a gate waits for an object that nothing in the release makes, or a link, check or
// gate names a Service that the release does not have, or that cannot be reached so.
const codeNoTarget fault.Code = "PLT-016"

// checkServices fails with codeNoTarget, and names each link, check and gate of what is not off
// whose Service will not answer.
func checkServices(r *platform.Release, off []string, have *releaseObjects) error {
	var problems []error
	look := func(what, component, field, ref string, outside bool) {
		if ref == "" || slices.Contains(off, component) {
			return
		}
		if err := have.reach(ref, outside); err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", what, contract.Place(r.Path(platform.File), r.Line(field)), err))
		}
	}
	for i, l := range r.Links {
		look("link "+l.Name, l.Component, fmt.Sprintf("links[%d].service", i), l.Service, true)
	}
	for i, c := range r.Checks {
		look("check "+c.Name, c.Component, fmt.Sprintf("checks[%d].service", i), c.Service, true)
	}
	gates(r, off, func(whose, in string, g platform.Await) {
		look(whose, "", in+".endpoint", g.Endpoint, false)
		if g.HTTP != nil {
			look(whose, "", in+".http.service", g.HTTP.Service, false)
		}
	})
	if len(problems) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeNoTarget, Class: fault.Usage, Op: fmt.Sprintf("find the Services that %s %s asks", r.Name, r.Version), Err: listed(problems),
		Fix: "name a Service of a component; links and checks need type LoadBalancer, in most charts the value service.type. slipway platform render lists the Services",
	}
}

// reach says why the Service "namespace/name:port" will not be reached; outside asks for a
// load balancer.
func (m *releaseObjects) reach(ref string, outside bool) error {
	namespace, name, port, err := platform.ParseService(ref)
	if err != nil {
		return err
	}
	id := namespace + "/" + name
	found, ok := m.services[id]
	switch {
	case !ok && m.complete(namespace):
		return fmt.Errorf("no component has a Service %s", id)
	case !ok:
		m.addUnknown(namespace, "Service "+id)
		return nil
	case outside && found.kind != "LoadBalancer":
		return fmt.Errorf("the Service %s (%s) is of type %s, and is asked through a load balancer", id, found.from, found.kind)
	case len(found.ports) > 0 && !slices.Contains(found.ports, strconv.Itoa(port)):
		return fmt.Errorf("the Service %s (%s) has no port %d, only %s", id, found.from, port, strings.Join(found.ports, ", "))
	}
	return nil
}
