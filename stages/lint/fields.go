package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	strict "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json" // decodes as the API server does
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

type mistake struct {
	document.Problem       // without a line, and without the value
	Path             []any // to the field: names (string) and places in lists (int); empty: the object
	Unknown          bool  // the object has no such field; else its value is of another type, or none that a cluster takes
	Lenient          bool  // only what is applied by the server is refused for it
}

// fieldMistakes are the fields of an object of one of Kubernetes' own kinds that this version of
// Kubernetes does not know, and those whose values it cannot take, in the order of their
// names; where there are none of these, those whose values no cluster takes, such as a port above
// 65535. Of other kinds, definitions of kinds among them, there are labels alone. Whether there are
// any, the decoder of the API server says.
func fieldMistakes(o *unstructured.Unstructured) []mistake {
	kind := o.GroupVersionKind()
	var out mistakes
	if kind.Group == "apiextensions.k8s.io" || !scheme.Scheme.Recognizes(kind) { // Helm adds the former to the scheme
		out.limits(reflect.TypeFor[metav1.ObjectMeta](), o.Object["metadata"], []any{"metadata"})
		return out
	}
	decoder := strict.NewSerializerWithOptions(strict.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, strict.SerializerOptions{Strict: true})
	text, err := json.Marshal(o.Object)
	if err == nil {
		_, _, err = decoder.Decode(text, nil, nil)
	}
	if err == nil {
		out.name(o)
		out.limits(scheme.Scheme.AllKnownTypes()[kind], o.Object, nil)
		return out
	}
	out.look(scheme.Scheme.AllKnownTypes()[kind], o.Object, nil)
	if len(out) == 0 { // it is wrong in a way that look does not know
		return []mistake{{Problem: document.Problem{Got: err.Error()}}}
	}
	return out
}

// mistakes finds what the decoder cannot: all of them, and where each is.
type mistakes []mistake

// look compares a value with the type that Kubernetes has for it.
func (m *mistakes) look(t reflect.Type, v any, at []any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch is := v.(type) {
	case nil: // counts as not given
	case map[string]any:
		if t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			m.value(t, v, at)
			return
		}
		m.mapping(t, is, at)
	case []any:
		if t.Kind() != reflect.Slice || t.Elem().Kind() == reflect.Uint8 {
			m.value(t, v, at)
			return
		}
		for i, item := range is {
			m.look(t.Elem(), item, append(slices.Clip(at), i))
		}
	default:
		m.value(t, v, at)
	}
}

// mapping looks at the fields of an object, or at the values of a map.
func (m *mistakes) mapping(t reflect.Type, v map[string]any, at []any) {
	var fields map[string]render.Field
	switch t.Kind() {
	case reflect.Struct:
		fields = render.Fields(t)
	case reflect.Map:
	default:
		m.value(t, v, at)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		in := append(slices.Clip(at), name)
		switch f, ok := fields[name]; {
		case fields == nil:
			m.look(t.Elem(), v[name], in)
		case ok:
			m.look(f.Type, v[name], in)
		default:
			p := document.Problem{Field: pathOf(in), Got: document.Unknown}
			if meant := document.Nearest(name, slices.Sorted(maps.Keys(fields))); meant != "" {
				p.Want = document.Quote(meant)
			}
			*m = append(*m, mistake{Problem: p, Path: in, Unknown: true})
		}
	}
}

// value has the decoder take a value.
func (m *mistakes) value(t reflect.Type, v any, at []any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = utiljson.Unmarshal(text, reflect.New(t).Interface())
	}
	if err == nil {
		return
	}
	got, want := "a number", wanted(t)
	switch is := v.(type) {
	case string:
		got = "text"
		if _, err := strconv.ParseInt(is, 10, 64); err == nil && want == wholeNumber || (is == "true" || is == "false") && t.Kind() == reflect.Bool {
			want += ", without quotes"
		}
	case bool:
		got = "true or false"
	case []any:
		got = "a list"
	case map[string]any:
		got = "a mapping"
	case int64:
		if want == wholeNumber {
			got = "a number out of range"
		}
	}
	if t.Kind() == reflect.String && (got == "a number" || got == "true or false") {
		want += " (put it in quotes)"
	}
	*m = append(*m, mistake{Problem: document.Problem{Field: pathOf(at), Got: got, Want: want}, Path: at})
}

const wholeNumber = "a whole number"

func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return "a quantity such as 500m or 1Gi"
	case reflect.TypeFor[intstr.IntOrString]():
		return "a whole number or text"
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return "a time such as 2006-01-02T15:04:05Z"
	case reflect.TypeFor[metav1.Duration]():
		return "a duration such as 1h30m"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return wholeNumber
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "text in base64"
		}
		return "a list"
	}
	return "a mapping"
}

// pathOf writes the path to a field: spec.containers[0].image, metadata.labels["a.b/c"].
func pathOf(at []any) string {
	var b strings.Builder
	for i, part := range at {
		name, ok := part.(string)
		switch {
		case !ok:
			fmt.Fprintf(&b, "[%d]", part)
		case strings.ContainsAny(name, ". "):
			fmt.Fprintf(&b, "[%q]", name)
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}
