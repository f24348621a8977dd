package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

// Field is a field of a struct that Kubernetes has for an object or a part of one.
type Field struct {
	reflect.Type
	Key string // by which Kubernetes tells the items of the list that it is from one another; empty: it does not
}

// Fields are those of a struct, by their names in JSON.
func Fields(t reflect.Type) map[string]Field {
	out := map[string]Field{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "" && f.Anonymous: // inline
			maps.Copy(out, Fields(f.Type))
		case name == "conditions":
			out[name] = Field{Type: f.Type}
		case name != "-":
			out[name] = Field{f.Type, f.Tag.Get("patchMergeKey")}
		}
	}
	return out
}

// IsStruct reports whether t, which is no pointer, has fields, rather than a form of its own in JSON.
func IsStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// ItemID tells an item of a list from the others by its key; empty if it has none.
func ItemID(item any, key string) string {
	is, _ := item.(map[string]any)
	value, ok := is[key]
	if !ok {
		return ""
	}
	id := fmt.Sprint(value)
	if strings.HasSuffix(strings.ToLower(key), "port") {
		protocol, _ := is["protocol"].(string)
		id += "/" + cmp.Or(protocol, "TCP")
	}
	return id
}

// TakesLast reports whether Kubernetes takes the last of several items with one key in a list, the
// field name of t, unless they are applied by the server. It refuses them in other lists.
func TakesLast(t reflect.Type, name string) bool {
	return t != reflect.TypeFor[corev1.ServiceSpec]() &&
		!slices.Contains([]string{"volumes", "containers", "initContainers", "ephemeralContainers", "volumeMounts"}, name)
}

// KeepLast removes the items of an object's lists that an item further on replaces in what
// Kubernetes makes of them. Helm sends both; what is applied by the server must not have them.
func KeepLast(o *unstructured.Unstructured) {
	if t, known := scheme.Scheme.AllKnownTypes()[o.GroupVersionKind()]; known {
		keepLast(t, o.Object)
	}
}

func keepLast(t reflect.Type, v any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	list, _ := v.([]any)
	for _, item := range list {
		if t.Kind() == reflect.Slice {
			keepLast(t.Elem(), item)
		}
	}
	in, _ := v.(map[string]any)
	if t.Kind() == reflect.Map {
		for _, value := range in {
			keepLast(t.Elem(), value)
		}
	}
	if !IsStruct(t) {
		return
	}
	fields := Fields(t)
	for name, value := range in {
		f, known := fields[name]
		if !known {
			continue
		}
		if list, ok := value.([]any); ok && f.Key != "" && TakesLast(t, name) {
			value = lastOf(list, f.Key)
			in[name] = value
		}
		keepLast(f.Type, value)
	}
}

func lastOf(list []any, key string) []any {
	out := []any{} // an empty list stays one
	for i, item := range list {
		id := ItemID(item, key)
		again := func(later any) bool { return ItemID(later, key) == id }
		if id == "" || !slices.ContainsFunc(list[i+1:], again) {
			out = append(out, item)
		}
	}
	return out
}
