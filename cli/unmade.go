package cli

import (
	"fmt"
	"slices"

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

// unmade fails with codeUnreached, and names each gate of what is not off that waits for an object
// which nothing makes. Gates on Services are for unreached.
func unmade(r *platform.Release, off []string, have *made) error {
	var list []error
	gates(r, off, func(whose, in string, g platform.Await) {
		field, o, ok := awaited(g)
		if !ok || have.objects[idOf(o)] || !byHand(o) {
			return
		}
		if !have.allOf(o.Namespace) {
			have.unsure(o.Namespace, o.Kind+" "+o.Namespace+"/"+o.Name)
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
		Code: codeUnreached, Class: fault.Usage, Op: fmt.Sprintf("find what the gates of %s %s wait for", r.Name, r.Version), Err: listed(list),
		Fix: "name an object that a component has: slipway platform render shows them",
	}
}

// awaited is the object that a gate waits for, and the field that names it.
func awaited(g platform.Await) (field string, o platform.Object, ok bool) {
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
