package lint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// targets notes, of what is rendered, each link, check and gate of what is on whose Service will not answer, and each
// gate that waits for an object that nothing makes. What somebody else may make is not looked for.
func (v *linter) targets(parts []contract.Rendered) {
	on := []string{""} // what is of no component
	for _, c := range v.Components {
		on = append(on, c.Component)
	}
	if v.Apps != nil {
		apps, _ := v.release.Apps(v.Apps.Disabled) // installed has looked at them
		for _, c := range apps {
			on = append(on, c.Name)
		}
	}
	have := v.made(parts)
	check := func(what, field string, err error) {
		if err != nil {
			v.wrong(what, platform.File, v.release.Line(field), err)
		}
	}
	outside := func(what, component, field, ref string) {
		if ref != "" && slices.Contains(on, component) {
			check(what, field, have.reach(ref, true))
		}
	}
	for i, l := range v.release.Links {
		outside("link "+l.Name, l.Component, fmt.Sprintf("links[%d].service", i), l.Service)
	}
	for i, c := range v.release.Checks {
		outside("check "+c.Name, c.Component, fmt.Sprintf("checks[%d].service", i), c.Service)
	}
	gates := func(component, whose, field string, all []platform.Await) {
		if !slices.Contains(on, component) {
			return
		}
		for i, g := range all {
			gate := func(name string, err error) {
				if err != nil {
					check(whose, fmt.Sprintf("%s.ready[%d].%s", field, i, name), fmt.Errorf("gate %s: %w", g.Describe(), err))
				}
			}
			switch {
			case g.Endpoint != "":
				gate("endpoint", have.reach(g.Endpoint, false))
			case g.HTTP != nil:
				gate("http.service", have.reach(g.HTTP.Service, false))
			case g.Rollout != "":
				gate("rollout", have.makes(g.Rollout))
			case g.Job != "":
				gate("job", have.makes("batch/v1/Job "+g.Job))
			case g.Condition != nil:
				gate("condition.object", have.makes(g.Condition.Object))
			case g.CEL != nil:
				gate("cel.object", have.makes(g.CEL.Object))
			}
		}
	}
	for i, c := range v.release.Components {
		gates(c.Name, c.Name, fmt.Sprintf("components[%d]", i), c.Ready)
	}
	for i, t := range v.release.Tests {
		gates(t.Component, "test "+t.Name, fmt.Sprintf("tests[%d]", i), t.Ready)
	}
}

// made is what a platform release renders to.
type made struct {
	services map[string]service // by "namespace/name"
	objects  map[string]bool    // as idOf has them
	closed   []string           // the release's namespaces, if they will have nothing else
}

type service struct {
	kind, from string
	ports      []string
}

func (v *linter) made(parts []contract.Rendered) made {
	out := made{services: map[string]service{}, objects: map[string]bool{}}
	if closed(parts) {
		for _, n := range v.release.Namespaces {
			out.closed = append(out.closed, n.Name)
		}
	}
	for _, p := range parts {
		for _, content := range p.Objects {
			o := &unstructured.Unstructured{Object: content}
			out.objects[idOf(o.GroupVersionKind(), o.GetNamespace(), o.GetName())] = true
			if o.GetAPIVersion() == "v1" && o.GetKind() == "Service" {
				out.services[o.GetNamespace()+"/"+o.GetName()] = serviceOf(o, "component "+p.Component+", "+v.release.Path(p.File))
			}
		}
	}
	return out
}

// closed reports whether all objects are rendered, and none is for a controller that may make more.
func closed(parts []contract.Rendered) bool {
	return !slices.ContainsFunc(parts, func(p contract.Rendered) bool {
		return p.Err != nil || slices.ContainsFunc(p.Objects, func(content map[string]any) bool {
			kind := (&unstructured.Unstructured{Object: content}).GroupVersionKind()
			own := scheme.Scheme.Recognizes(kind) || slices.Contains([]string{"CustomResourceDefinition", "APIService"}, kind.Kind)
			// Of a project, and of an Application of the tree, nothing comes but what is rendered, too.
			followed := kind.Group == "argoproj.io" && (kind.Kind == "AppProject" || kind.Kind == "Application" && (p.Kind == string(platform.App) || p.Kind == gitOps))
			return !own && !followed
		})
	})
}

func serviceOf(o *unstructured.Unstructured, from string) service {
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

// byHand are kinds of objects that controllers and Jobs do not make.
func byHand() []string {
	return []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service", "Ingress", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
}

// makes says that an object, "apps/v1/Deployment shop/web", will not be there.
func (m made) makes(ref string) error {
	o, err := platform.ParseObject(ref)
	if err != nil {
		return nil // which was refused when the release was read
	}
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	if m.objects[idOf(kind, o.Namespace, o.Name)] || !slices.Contains(m.closed, o.Namespace) || !scheme.Scheme.Recognizes(kind) || !slices.Contains(byHand(), o.Kind) {
		return nil
	}
	return fmt.Errorf("no component has the %s %s/%s", o.Kind, o.Namespace, o.Name)
}

// reach says why the Service "namespace/name:port", with outside by a load balancer, is not reached.
func (m made) reach(ref string, outside bool) error {
	namespace, name, port, err := platform.ParseService(ref)
	if err != nil {
		return err
	}
	id := namespace + "/" + name
	found, ok := m.services[id]
	switch {
	case !ok && slices.Contains(m.closed, namespace):
		return errors.New("no component has the Service " + id)
	case !ok:
		return nil
	case outside && found.kind != "LoadBalancer":
		return fmt.Errorf("the Service %s (%s) is of type %s, and is asked through a load balancer: set its type to LoadBalancer, in most charts by the value service.type", id, found.from, found.kind)
	case len(found.ports) > 0 && !slices.Contains(found.ports, strconv.Itoa(port)):
		return fmt.Errorf("the Service %s (%s) has no port %d, only %s", id, found.from, port, strings.Join(found.ports, ", "))
	}
	return nil
}

func idOf(kind schema.GroupVersionKind, namespace, name string) string {
	return kind.GroupKind().String() + " " + namespace + "/" + name
}
