package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeNoTarget: a gate waits for an object that nothing in the release makes, or a link, check or
// gate names a Service that the release does not have, or that cannot be reached so.
const codeNoTarget fault.Code = "PLT-016"

// checkTargets fails with codeNoTarget, and names each link, check and gate of what is not off whose
// Service will not answer, and each gate that waits for an object that nothing makes. What may be
// made by somebody else is not looked for.
func checkTargets(r *platform.Release, off []string, have *releaseObjects) error {
	var problems []error
	add := func(what, field string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", what, contract.Place(r.Path(platform.File), r.Line(field)), err))
		}
	}
	outside := func(what, component, field, ref string) {
		if ref != "" && !slices.Contains(off, component) {
			add(what, field, have.reach(ref, true))
		}
	}
	for i, l := range r.Links {
		outside("link "+l.Name, l.Component, fmt.Sprintf("links[%d].service", i), l.Service)
	}
	for i, c := range r.Checks {
		outside("check "+c.Name, c.Component, fmt.Sprintf("checks[%d].service", i), c.Service)
	}
	gates := func(component, whose, field string, all []platform.Await) {
		if slices.Contains(off, component) {
			return
		}
		for i, g := range all {
			what, in := whose+", gate "+g.Describe(), fmt.Sprintf("%s.ready[%d].", field, i)
			switch {
			case g.Endpoint != "":
				add(what, in+"endpoint", have.reach(g.Endpoint, false))
			case g.HTTP != nil:
				add(what, in+"http.service", have.reach(g.HTTP.Service, false))
			case g.Rollout != "":
				add(what, in+"rollout", have.makes(g.Rollout))
			case g.Job != "":
				add(what, in+"job", have.makes("batch/v1/Job "+g.Job))
			case g.Condition != nil:
				add(what, in+"condition.object", have.makes(g.Condition.Object))
			case g.CEL != nil:
				add(what, in+"cel.object", have.makes(g.CEL.Object))
			}
		}
	}
	for i, c := range r.Components {
		gates(c.Name, "component "+c.Name, fmt.Sprintf("components[%d]", i), c.Ready)
	}
	for i, t := range r.Tests {
		gates(t.Component, "test "+t.Name, fmt.Sprintf("tests[%d]", i), t.Ready)
	}
	if len(problems) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeNoTarget, Class: fault.Usage, Op: fmt.Sprintf("find what the gates, links and checks of %s %s ask", r.Name, r.Version), Err: listed(problems),
		Fix: "name an object or a Service of a component, which slipway platform render shows; links and checks need type LoadBalancer, in most charts the value service.type",
	}
}

// byHand are kinds of Kubernetes' own of which there is nothing but what somebody writes down. Pods,
// claims and whatever else Kubernetes makes of those are not, nor Secrets and ConfigMaps: Jobs make
// these, and so do others in the cluster.
func byHand() []string {
	return []string{
		"apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "batch/CronJob", "/Service",
		"networking.k8s.io/Ingress", "autoscaling/HorizontalPodAutoscaler", "policy/PodDisruptionBudget",
	}
}

// makes says that an object, "apps/v1/Deployment shop/web", will not be there.
func (m *releaseObjects) makes(ref string) error {
	o, err := platform.ParseObject(ref)
	if err != nil || m.objects[idOf(o)] || !m.complete(o.Namespace) || !slices.Contains(byHand(), kindOf(o)) {
		return nil // a reference that is wrong was refused when the release was read
	}
	return fmt.Errorf("no component has the %s %s/%s", o.Kind, o.Namespace, o.Name)
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
		return errors.New("no component has the Service " + id)
	case !ok:
		return nil
	case outside && found.kind != "LoadBalancer":
		return fmt.Errorf("the Service %s (%s) is of type %s, and is asked through a load balancer", id, found.from, found.kind)
	case len(found.ports) > 0 && !slices.Contains(found.ports, strconv.Itoa(port)):
		return fmt.Errorf("the Service %s (%s) has no port %d, only %s", id, found.from, port, strings.Join(found.ports, ", "))
	}
	return nil
}

// releaseObjects is what a platform release renders to.
type releaseObjects struct {
	services map[string]service // by "namespace/name"
	objects  map[string]bool    // as idOf has them
	// closed are the release's namespaces, if they will have nothing else: everything is rendered,
	// and nothing is for a controller of somebody's.
	closed []string
}

type service struct {
	kind, from string
	ports      []string
}

// objectsOf is what the parts of a release make.
func objectsOf(r *platform.Release, parts []contract.Rendered) *releaseObjects {
	out := &releaseObjects{services: map[string]service{}, objects: map[string]bool{}}
	for _, n := range r.Namespaces {
		out.closed = append(out.closed, n.Name)
	}
	for _, p := range parts {
		if p.Err != nil {
			out.closed = nil
		}
		for _, content := range p.Objects {
			o := unstructured.Unstructured{Object: content}
			version, kind, namespace := o.GetAPIVersion(), o.GetKind(), o.GetNamespace()
			if !kubernetesOwn(version) && !followed(p, version, kind) {
				out.closed = nil
			}
			out.objects[idOf(platform.Object{APIVersion: version, Kind: kind, Namespace: namespace, Name: o.GetName()})] = true
			if version == "v1" && kind == "Service" {
				out.services[namespace+"/"+o.GetName()] = serviceOf(o, "component "+p.Component+", "+r.Path(p.File))
			}
		}
	}
	return out
}

func serviceOf(o unstructured.Unstructured, from string) service {
	s := service{kind: "ClusterIP", from: from}
	if kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); kind != "" {
		s.kind = kind
	}
	ports, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ports")
	list, _ := ports.([]any)
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok {
			s.ports = append(s.ports, fmt.Sprint(m["port"]))
		}
	}
	return s
}

// complete reports whether a namespace will have nothing else than what is made. Those that
// are not the release's have things of others.
func (m *releaseObjects) complete(namespace string) bool { return slices.Contains(m.closed, namespace) }

// kindOf is "apps/Deployment", whatever the version; "/Service" without a group.
func kindOf(o platform.Object) string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = ""
	}
	return group + "/" + o.Kind
}

// idOf names an object.
func idOf(o platform.Object) string { return kindOf(o) + " " + o.Namespace + "/" + o.Name }

// followed reports whether an object is one of Argo CD's of which nothing comes but what is
// among the parts, too: a project, and an Application of the tree. One that is not of the tree
// brings what nobody has rendered, as an ApplicationSet does.
func followed(p contract.Rendered, version, kind string) bool {
	group, _, _ := strings.Cut(version, "/")
	return group == "argoproj.io" && (kind == "AppProject" || kind == "Application" && (p.Kind == string(platform.App) || p.Kind == "gitops"))
}

// kubernetesOwn reports whether objects of that version are for controllers of Kubernetes'
// own. The definition of a kind is: nothing is made of it before there is an object of that.
func kubernetesOwn(version string) bool {
	group, _, found := strings.Cut(version, "/")
	if !found || !strings.Contains(group, ".") || group == "rbac.authorization.k8s.io" {
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && strings.Count(group, ".") == 2
}
