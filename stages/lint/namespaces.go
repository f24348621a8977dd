package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// homeless notes the files with objects in namespaces that will not be there: the first
// object of each namespace. There are none where others may make namespaces: in an existing
// cluster, or where not all objects are known or some are for controllers of others.
func (v *linter) homeless() {
	if v.Guessed || len(v.unread) > 0 {
		return
	}
	there := []string{"default"}
	for _, n := range v.release.Namespaces {
		there = append(there, n.Name)
	}
	for _, p := range v.shown {
		if p.Err != nil {
			return
		}
		for _, o := range p.Objects {
			kind := (&unstructured.Unstructured{Object: o}).GroupVersionKind()
			if kind.Kind != "CustomResourceDefinition" && !scheme.Scheme.Recognizes(kind) {
				return
			}
			if kind.Group == "" && kind.Kind == "Namespace" {
				there = append(there, (&unstructured.Unstructured{Object: o}).GetName())
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
