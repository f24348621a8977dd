package lint

import (
	"cmp"
	"fmt"

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
