package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// References returns the places where a configuration finds secrets, by setting. They are found
// by their type, SecretRef, in the whole configuration, so that no setting can be forgotten.
// sections describe the providers, whose settings only they know.
func (c *Config) References(sections []Section) map[string]SecretRef {
	found := map[string]SecretRef{}
	add := func(setting string, ref SecretRef) SecretRef {
		if ref != "" {
			found[setting] = ref
		}
		return ref
	}
	eachReference("", reflect.ValueOf(c), add)
	for _, section := range sections {
		if raw, ok := c.sections[section.Name]; ok && section.Settings != nil {
			settings := reflect.New(reflect.TypeOf(section.Settings))
			Decode(raw, settings.Interface()) // its problems are Load's to report
			eachReference(section.Name, settings, add)
		}
	}
	return found
}

// eachReference calls do with each reference in v, which is at path, and puts what that returns
// in its place. It reports whether anything is another now: what is not is not written to, since
// others may read it at the same time.
func eachReference(path string, v reflect.Value, do func(setting string, ref SecretRef) SecretRef) (changed bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && eachReference(path, v.Elem(), do)
	case reflect.Struct:
		for field, value := range v.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-", !field.IsExported() && !field.Anonymous:
			case field.Anonymous && name == "":
				changed = eachReference(path, value, do) || changed
			default:
				changed = eachReference(setting(path, name, field.Name), value, do) || changed
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem() // what is in a map cannot be set
			value.Set(v.MapIndex(key))
			if eachReference(setting(path, key.String()), value, do) {
				v.SetMapIndex(key, value)
				changed = true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			changed = eachReference(setting(path, nameOf(v.Index(i)), strconv.Itoa(i)), v.Index(i), do) || changed
		}
	case reflect.String:
		if ref, ok := v.Interface().(SecretRef); ok {
			if is := do(path, ref); is != ref {
				v.SetString(string(is))
				return true
			}
		}
	}
	return changed
}

// setting is the path of what is called by the first of names that is not empty.
func setting(path string, names ...string) string {
	i := slices.IndexFunc(names, func(name string) bool { return name != "" })
	if i < 0 {
		return path
	}
	return strings.TrimPrefix(path+"."+names[i], ".")
}

// nameOf is the name of a thing in a list; empty: it has none.
func nameOf(v reflect.Value) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	if name := v.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String {
		return name.String()
	}
	return ""
}
