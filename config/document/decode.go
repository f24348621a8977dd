package document

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"
)

// Decode reads the document into the struct that into points to, by its json tags.
// Fields that the document leaves out or leaves empty retain their values. The root
// fields named by sections are not decoded but returned as JSON.
//
// If a struct has a method SetDefaults, that is called before it is decoded. If a string
// type has a method Wanted, that describes the expected value in problems.
// Decode supports structs, slices, maps with string keys, pointers, strings, booleans,
// integers, json.RawMessage and encoding.TextUnmarshaler, and panics on any other type.
func (d *Document) Decode(into any, sections ...string) (map[string]json.RawMessage, []Problem) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("document: decode into %T, want a pointer to a struct", into))
	}
	if d.root == nil {
		return nil, nil
	}
	dec := decoder{doc: d, sections: map[string]json.RawMessage{}, env: d.env}
	dec.mapping("", d.root, v.Elem(), sections)
	d.expanded = dec.expanded
	return dec.sections, dec.problems
}

type decoder struct {
	doc      *Document
	problems []Problem
	sections map[string]json.RawMessage
	env      func(string) (string, bool)
	expanded []string
}

func (d *decoder) problem(field string, n *yaml.Node, got, want string) {
	line := n.Line
	if d.doc.Has(field) {
		line = d.doc.Line(field)
	}
	d.problems = append(d.problems, Problem{Field: field, Line: line, Got: got, Want: want})
}

func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value, sections []string) {
	if s, ok := v.Addr().Interface().(interface{ SetDefaults() }); ok {
		s.SetDefaults()
	}
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	for key, value := range pairs(n) {
		name := key.Value
		if !IsText(key) || seen[name] {
			continue // Parse has reported it
		}
		seen[name] = true
		field := join(path, name)
		if i, ok := fields[name]; ok {
			before := len(d.problems)
			d.value(field, value, v.Field(i))
			if values := keywords(v.Type().Field(i), "enum"); len(values) > 0 && len(d.problems) > before && v.Field(i).Kind() != reflect.Slice {
				d.problems[before].Want = OneOf(values...) + unquoted(value, v.Field(i).Kind())
			}
			if v.Field(i).Kind() == reflect.String && d.env != nil && v.Type().Field(i).Tag.Get("interpolate") == "true" {
				d.expand(field, value, v.Field(i))
			}
			continue
		}
		if slices.Contains(sections, name) {
			d.section(field, name, value)
			continue
		}
		p := NoField(path, name, append(slices.Collect(maps.Keys(fields)), sections...))
		p.Line = key.Line
		d.problems = append(d.problems, p)
	}
}

func (d *decoder) section(field, name string, n *yaml.Node) {
	switch {
	case isNull(n):
	case n.Kind != yaml.MappingNode:
		d.problem(field, n, kindOf(n), "a mapping")
	default:
		if raw, ok := d.raw(field, n); ok {
			d.sections[name] = raw
		}
	}
}

func (d *decoder) value(field string, n *yaml.Node, v reflect.Value) {
	if isNull(n) || n.Kind == yaml.AliasNode {
		return // Parse has reported the alias
	}
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		if raw, ok := d.raw(field, n); ok {
			v.SetBytes(raw)
		}
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if !IsText(n) {
			want := "text"
			if err := u.UnmarshalText(nil); err != nil {
				want = err.Error()
			}
			d.problem(field, n, kindOf(n), want)
		} else if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.problem(field, n, Quote(n.Value), err.Error())
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(field, n, v.Elem())
	case reflect.Struct:
		if d.is(field, n, n.Kind == yaml.MappingNode, "a mapping") {
			d.mapping(field, n, v, nil)
		}
	case reflect.Map:
		if d.is(field, n, n.Kind == yaml.MappingNode, "a mapping") {
			d.dictionary(field, n, v)
		}
	case reflect.Slice:
		if d.is(field, n, n.Kind == yaml.SequenceNode, "a list") {
			v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
			for i, item := range n.Content {
				at := fmt.Sprintf("%s[%d]", field, i)
				if isNull(item) {
					d.problem(at, item, "nothing", "a value")
				}
				d.value(at, item, v.Index(i))
			}
		}
	case reflect.String:
		want := "text"
		if n.Kind == yaml.ScalarNode {
			want = "text (put it in quotes)"
		}
		if w, ok := v.Interface().(interface{ Wanted() string }); ok {
			want = w.Wanted()
		}
		if d.is(field, n, IsText(n), want) {
			v.SetString(n.Value)
		}
	case reflect.Bool:
		if b, ok := truth(n); d.is(field, n, ok, "true or false"+unquoted(n, reflect.Bool)) {
			v.SetBool(b)
		}
	case reflect.Int, reflect.Int64:
		d.number(field, n, v)
	default:
		panic(fmt.Sprintf("document: %s has type %v", field, v.Type()))
	}
}

// decimal matches whole numbers. It excludes 0100, which YAML reads as octal.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

func (d *decoder) number(field string, n *yaml.Node, v reflect.Value) {
	const want = "a whole number"
	if !d.is(field, n, kindOf(n) == "a number", want+unquoted(n, v.Kind())) {
		return
	}
	i, err := strconv.ParseInt(n.Value, 10, 32)
	switch {
	case !decimal.MatchString(n.Value):
		d.problem(field, n, "a number in another form", want+" in decimal digits, without leading zeros")
	case err != nil:
		d.problem(field, n, "a number out of range", want)
	}
	v.SetInt(i)
}

// unquoted returns the hint to leave out the quotes, if they are what is wrong with n.
func unquoted(n *yaml.Node, kind reflect.Kind) string {
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 {
		return ""
	}
	if kind == reflect.Bool && (n.Value == "true" || n.Value == "false") || kind == reflect.Int && decimal.MatchString(n.Value) {
		return ", without quotes"
	}
	return ""
}

func (d *decoder) dictionary(field string, n *yaml.Node, v reflect.Value) {
	out := reflect.MakeMap(v.Type())
	for key, value := range pairs(n) {
		if !IsText(key) || out.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			continue // Parse has reported it
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(join(field, key.Value), value, item)
		out.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
	v.Set(out)
}

func (d *decoder) is(field string, n *yaml.Node, ok bool, want string) bool {
	if !ok {
		d.problem(field, n, kindOf(n), want)
	}
	return ok
}

// raw returns n as JSON, as Helm and kubectl read it.
func (d *decoder) raw(field string, n *yaml.Node) (json.RawMessage, bool) {
	if !d.doc.Usable(field) {
		return nil, false
	}
	if long := unkept(field, n); len(long) > 0 {
		d.problems = append(d.problems, long...)
		return nil, false
	}
	text, err := yaml.Marshal(n)
	if err == nil {
		text, err = k8syaml.YAMLToJSON(text)
	}
	if err != nil {
		d.problem(field, n, "a value that JSON cannot hold", "text, finite numbers, true, false, lists and mappings")
		return nil, false
	}
	return text, true
}

// fieldsOf maps the json names of t's fields to their index.
func fieldsOf(t reflect.Type) map[string]int {
	out := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out[name] = i
		}
	}
	return out
}

// reference matches a reference to an environment variable, $$, and the beginning of a
// malformed reference.
var reference = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}|\$\{`)

// Refers reports whether text contains a reference to an environment variable.
func Refers(text string) bool { return strings.Contains(text, "${") }

// expand replaces the references to environment variables in the string v. A variable
// that is unset or empty and has no default is a problem. Values are never shown.
func (d *decoder) expand(field string, n *yaml.Node, v reflect.Value) {
	var unset []string
	malformed := false
	v.SetString(reference.ReplaceAllStringFunc(v.String(), func(found string) string {
		if found == "$$" {
			return "$"
		}
		m := reference.FindStringSubmatch(found)
		name, fallback := m[1], m[2]
		if name == "" || Refers(fallback) {
			malformed = true
			return found
		}
		d.expanded = append(d.expanded, field)
		if value, ok := d.env(name); ok && value != "" {
			return value
		}
		if fallback == "" && !slices.Contains(unset, name) {
			unset = append(unset, name)
		}
		return strings.TrimPrefix(fallback, ":-")
	}))
	switch {
	case malformed:
		d.problem(field, n, "${ without a name and } after it", "${NAME} or ${NAME:-default} (without a reference in it); or $${ for the characters themselves")
	case len(unset) > 0:
		d.problem(field, n, "${"+strings.Join(unset, "}, ${")+"}",
			fmt.Sprintf("the environment variables set, or defaults: ${%s:-value}", unset[0]))
	}
}
