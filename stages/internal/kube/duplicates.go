package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

// KeepLast removes the items of an object's lists that an item further on replaces in what
// Kubernetes makes of them. Helm sends both; what is applied by the server must not have them.
func KeepLast(o *unstructured.Unstructured) {
	t, known := scheme.Scheme.AllKnownTypes()[o.GroupVersionKind()]
	if !known {
		return
	}
	var found mistakes
	found.limits(t, o.Object, nil)
	for _, m := range found {
		if !m.Lenient {
			continue
		}
		at, key := m.Path[:len(m.Path)-2], m.Path[len(m.Path)-1].(string)
		put(o.Object, at, func(list []any) []any {
			var out []any
			for i, item := range list {
				id := itemID(item, key)
				again := func(later any) bool { return itemID(later, key) == id }
				if id == "" || !slices.ContainsFunc(list[i+1:], again) {
					out = append(out, item)
				}
			}
			return out
		})
	}
}

// put replaces the list at a path in v.
func put(v any, at []any, change func([]any) []any) {
	switch in := v.(type) {
	case map[string]any:
		name := at[0].(string)
		if list, is := in[name].([]any); is && len(at) == 1 {
			in[name] = change(list)
		} else if len(at) > 1 {
			put(in[name], at[1:], change)
		}
	case []any:
		put(in[at[0].(int)], at[1:], change)
	}
}
