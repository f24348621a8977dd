package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// located is an object that names the namespace in which it is.
type located struct{ component, file, kind, name, namespace string }

// locate notes the namespaces that objects of a file make and name.
func (v *linter) locate(component, file string, objs []*unstructured.Unstructured) {
	for _, o := range objs {
		switch kind := o.GroupVersionKind(); {
		case kind.Kind == "Namespace" && kind.Group == "":
			v.made = append(v.made, o.GetName())
		case kind.Kind == "CustomResourceDefinition":
		case !scheme.Scheme.Recognizes(kind):
			v.more = true
		case o.GetNamespace() != "" && inNamespace(o):
			v.located = append(v.located, located{component, file, kind.Kind, o.GetName(), o.GetNamespace()})
		}
	}
}

// homeless notes the files with objects in namespaces that will not be there: the first
// object of each. There are none where others may make namespaces: in a cluster that is
// there already, or where not all objects are known or some are for controllers of others.
func (v *linter) homeless() {
	if v.Guessed || v.more || len(v.unread) > 0 {
		return
	}
	there := v.made
	for _, n := range v.release.Namespaces {
		there = append(there, n.Name)
	}
	seen := map[located]bool{}
	for _, l := range v.located {
		file := located{component: l.component, file: l.file, namespace: l.namespace}
		own := l.namespace == "default" || strings.HasPrefix(l.namespace, "kube-") || strings.HasPrefix(l.namespace, kube.FieldManager+"-")
		if own || seen[file] || slices.Contains(there, l.namespace) {
			continue
		}
		seen[file] = true
		v.wrong(l.component, l.file, 0, fmt.Errorf("the %s %s is in the namespace %s, which neither the release nor an object of a component makes; list it under namespaces in platform.yaml, or have the object in another one", l.kind, l.name, l.namespace))
	}
}
