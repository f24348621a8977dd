package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	names "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// limits finds values that have the right type, and that no cluster takes: names, labels, ports,
// references of images, and what is in a list twice.
func (m *mistakes) limits(t reflect.Type, v any, at []any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch is := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, item := range is {
			m.limits(t.Elem(), item, append(slices.Clip(at), i))
		}
	case map[string]any:
		if t.Kind() == reflect.Map {
			for _, name := range slices.Sorted(maps.Keys(is)) {
				m.limits(t.Elem(), is[name], append(slices.Clip(at), name))
			}
		}
		if !render.IsStruct(t) {
			return
		}
		m.image(t, is, at)
		fields := render.Fields(t)
		for _, name := range slices.Sorted(maps.Keys(is)) {
			in := append(slices.Clip(at), name)
			f, ok := fields[name]
			if !ok {
				continue
			}
			m.port(f.Type, name, is[name], in)
			m.labels(t, name, is[name], in)
			if list, ok := is[name].([]any); ok && f.Key != "" {
				m.twice(t, name, f.Key, list, in)
			}
			m.limits(f.Type, is[name], in)
		}
	}
}

func (m *mistakes) limit(at []any, got, want string) {
	*m = append(*m, mistake{Problem: document.Problem{Field: pathOf(at), Got: got, Want: want}, Path: at})
}

func (m *mistakes) name(o *unstructured.Unstructured) {
	check := names.NameIsDNSSubdomain
	switch o.GroupVersionKind().Group + "/" + o.GetKind() {
	case "/Service":
		check = func(name string, _ bool) []string { return validation.IsDNS1123Label(name) } // the stricter form of older versions is theirs
	case "/Namespace":
		check = names.ValidateNamespaceName
	case "networking.k8s.io/IPAddress":
		return
	}
	if o.GroupVersionKind().Group == "rbac.authorization.k8s.io" {
		check = path.ValidatePathSegmentName //nolint:staticcheck // the API server's own
	}
	if bad := check(o.GetName(), false); len(bad) > 0 {
		m.limit([]any{"metadata", "name"}, document.Quote(o.GetName()), "a name that Kubernetes takes: "+withoutExample(bad[0]))
	}
}

// withoutExample is a rule of Kubernetes without the regular expression that it ends with.
func withoutExample(rule string) string {
	rule, _, _ = strings.Cut(rule, " (e.g. ")
	rule, _, _ = strings.Cut(rule, " (regex used")
	return rule
}

func (m *mistakes) image(t reflect.Type, v map[string]any, at []any) {
	switch t {
	case reflect.TypeFor[corev1.Container](), reflect.TypeFor[corev1.EphemeralContainer]():
	default:
		return
	}
	ref, _ := v["image"].(string)
	if ref == "" {
		return
	}
	if _, err := imageref.Parse(ref); err != nil {
		m.limit(append(slices.Clip(at), "image"), err.Error(), "")
	}
}

const maxPort = 65535

func (m *mistakes) port(t reflect.Type, name string, v any, at []any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Int32 && t != reflect.TypeFor[intstr.IntOrString]() || !strings.HasSuffix(strings.ToLower(name), "port") {
		return
	}
	n, ok := v.(int64)
	least := int64(0) // where none is given
	if name == "port" || name == "containerPort" {
		least = 1
	}
	if ok && (n < least || n > maxPort) {
		m.limit(at, fmt.Sprint(n), fmt.Sprintf("a port, 1 to %d", maxPort))
	}
}

// labels checks labels, and what chooses objects by labels.
func (m *mistakes) labels(t reflect.Type, name string, v any, at []any) {
	labels, ok := v.(map[string]any)
	switch {
	case !ok:
		return
	case t == reflect.TypeFor[metav1.ObjectMeta]() && name == "labels", name == "matchLabels", name == "nodeSelector",
		name == "selector" && (t == reflect.TypeFor[corev1.ServiceSpec]() || t == reflect.TypeFor[corev1.ReplicationControllerSpec]()):
	default:
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		in := append(slices.Clip(at), key)
		if bad := validation.IsQualifiedName(key); len(bad) > 0 {
			m.limit(in, "the key "+document.Quote(key), "a label's key: "+withoutExample(bad[0]))
		}
		value, _ := labels[key].(string)
		if bad := validation.IsValidLabelValue(value); len(bad) > 0 {
			m.limit(in, document.Quote(value), "a label's value: "+withoutExample(bad[0]))
		}
	}
}

// twice finds items of a list that have the key of an earlier one. Of some, Kubernetes takes the
// last one unless they are applied by the server.
func (m *mistakes) twice(t reflect.Type, name, key string, list []any, at []any) {
	seen := map[string]int{}
	for i, item := range list {
		id := render.ItemID(item, key)
		if id == "" {
			continue
		}
		first, again := seen[id]
		if !again {
			seen[id] = i
			continue
		}
		in := append(slices.Clip(at), i, key)
		m.limit(in, fmt.Sprintf("%s again (first in %s[%d])", document.Quote(id), name, first), "it once")
		(*m)[len(*m)-1].Lenient = render.TakesLast(t, name)
	}
}
