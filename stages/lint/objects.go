package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// origin is where the release has an object.
type origin struct{ component, file string }

// conflicts notes the objects that an earlier file, or the same one, has as well: each install
// would change them to and fro. Namespaces may be in several files, as they are all alike.
func (v *linter) conflicts(component, file string, line int, namespace string, objs []*unstructured.Unstructured) {
	if _, ok := v.release.Component(component); !ok { // tests and workloads are not installed
		return
	}
	if v.origins == nil {
		v.origins = map[kube.Member]origin{}
	}
	here := origin{component, contract.Place(file, line)}
	for _, o := range objs {
		m := kube.MemberOf(o)
		m.Kind.Version = ""
		if m.Kind.Group == "" && m.Kind.Kind == "Namespace" {
			continue
		}
		if !clusterScoped(o) {
			m.Namespace = cmp.Or(m.Namespace, namespace)
		}
		other, is := v.origins[m]
		switch {
		case !is:
			v.origins[m] = here
		case other == here:
			v.wrong(component, file, line, fmt.Errorf("the file has the %s twice; remove one, or give it another name", m))
		case other.component == component:
			v.wrong(component, file, line, fmt.Errorf("%s has the %s, too; remove one, or give it another name", other.file, m))
		default:
			v.wrong(component, file, line, fmt.Errorf("the component %s has the %s, too (%s); remove one, or give it another name", other.component, m, other.file))
		}
	}
}

// clusterScoped reports whether an object is of one of Kubernetes' own kinds that have no
// namespace, or a CustomResourceDefinition.
func clusterScoped(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind()
	return kind.Kind == "CustomResourceDefinition" || scheme.Scheme.Recognizes(kind) && !inNamespace(o)
}

// homeless notes the files with objects in namespaces that will not be there: the first
// object of each namespace. There are none where others may make namespaces: in an existing
// cluster, or where not all objects are known or some are for controllers of others.
func (v *linter) homeless() {
	if v.Guessed || len(v.unread) > 0 || v.Projects != nil || !closed(v.shown) {
		return
	}
	there := []string{"default"}
	for _, n := range v.release.Namespaces {
		there = append(there, n.Name)
	}
	for _, p := range v.shown {
		for _, object := range p.Objects {
			if o := (&unstructured.Unstructured{Object: object}); o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" {
				there = append(there, o.GetName())
			}
		}
	}
	for _, p := range v.shown {
		seen := append([]string{p.Namespace}, there...) // that of the component is not the object's own
		for _, object := range p.Objects {
			o := &unstructured.Unstructured{Object: object}
			namespace := o.GetNamespace()
			if !inNamespace(o) || slices.Contains(seen, namespace) || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, kube.FieldManager+"-") {
				continue
			}
			seen = append(seen, namespace)
			v.wrong(p.Component, p.File, 0, fmt.Errorf("the %s %s is in the namespace %s, which neither the release nor an object of a component makes; list it under namespaces in platform.yaml, or have the object in another one", o.GetKind(), o.GetName(), namespace))
		}
	}
}
