package document

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Check adds a problem for each text and number of a struct, which is at path, that is not
// what the field's tags ask for: jsonschema:"pattern=…", with want:"…" to describe what
// matches, or jsonschema:"enum=…". A field with omitempty may be empty; structs and lists
// in the struct are not looked into.
func (l *List) Check(path string, in any) {
	v := reflect.Indirect(reflect.ValueOf(in))
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if value.Kind() != reflect.String && !value.CanInt() || value.IsZero() && options == "omitempty" {
			continue
		}
		field, text := join(path, name), fmt.Sprint(value)
		enum := keywords(f, "enum")
		switch {
		case len(enum) > 0 && !slices.Contains(enum, text) && value.Kind() == reflect.String:
			l.Add(field, Quote(text), OneOf(enum...))
		case len(enum) > 0 && !slices.Contains(enum, text):
			l.Add(field, text, OneOf(enum...))
		}
		for _, pattern := range keywords(f, "pattern") {
			l.Match(field, text, regexp.MustCompile(pattern), f.Tag.Get("want"))
		}
	}
}

// Match adds a problem unless value matches.
func (l *List) Match(field, value string, re *regexp.Regexp, want string) {
	if !re.MatchString(value) {
		l.Add(field, Shown(value), want)
	}
}

// keywords returns the values that a field's JSON schema has for a keyword.
func keywords(f reflect.StructField, name string) []string {
	var out []string
	tag := strings.ReplaceAll(f.Tag.Get("jsonschema"), `\,`, "\x00") // a comma within a value
	for entry := range strings.SplitSeq(tag, ",") {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			out = append(out, strings.ReplaceAll(value, "\x00", ","))
		}
	}
	return out
}
