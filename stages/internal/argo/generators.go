package argo

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CompleteGenerators gives the generators of an ApplicationSet the empty fields with which its
// controller writes them back (Argo CD 3.6.1, applicationset_types.go: structs that are not
// pointers, which omitempty does not omit). Without these, each would undo the other's list.
func CompleteGenerators(o *unstructured.Unstructured) {
	spec, _ := o.Object["spec"].(map[string]any)
	complete(spec["generators"])
}

func complete(generators any) {
	list, _ := generators.([]any)
	for _, e := range list {
		g, _ := e.(map[string]any)
		for kind, e := range g {
			of, ok := e.(map[string]any)
			if !ok || kind == "selector" {
				continue
			}
			template := object(of, "template")
			object(template, "metadata")
			spec := object(template, "spec")
			object(spec, "destination")
			if _, ok := spec["project"]; !ok {
				spec["project"] = ""
			}
			switch kind {
			case "clusters":
				object(of, "selector")
			case "clusterDecisionResource":
				object(of, "labelSelector")
			case "matrix", "merge":
				// Those in these are kept as they are written.
				nested, _ := of["generators"].([]any)
				for _, e := range nested {
					if g, ok := e.(map[string]any); ok && g["matrix"] == nil && g["merge"] == nil {
						complete([]any{g})
					}
				}
			}
		}
	}
}

// object is a field that is an object; it is made where there is none.
func object(of map[string]any, field string) map[string]any {
	out, ok := of[field].(map[string]any)
	if !ok {
		out = map[string]any{}
		of[field] = out
	}
	return out
}
