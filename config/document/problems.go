package document

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Invalid is every problem of a document, in the order of its lines.
type Invalid struct {
	Problems []Problem
}

// maxListed is how many problems a message lists.
const maxListed = 100

// Error lists the problems, one per line after the first.
func (e *Invalid) Error() string {
	var b strings.Builder
	if len(e.Problems) == 1 {
		b.WriteString("1 problem:")
	} else {
		fmt.Fprintf(&b, "%d problems:", len(e.Problems))
	}
	for i, p := range e.Problems {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  … and %d more", len(e.Problems)-maxListed)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Merge combines problems from several checks into one list: it adds their lines,
// retains only the first of each field (a field that could not be decoded need not be
// validated), drops those that follow from another one (a misspelt field is not reported
// as missing, too), and sorts them by line.
func (d *Document) Merge(problems ...Problem) []Problem {
	var out []Problem
	seen, meant := map[string]bool{}, map[string]bool{}
	for _, p := range problems {
		if p.Meant != "" && !d.Has(p.Meant) {
			meant[p.Meant] = true
		}
	}
	follows := func(p Problem) bool {
		return p.Cause != "" && (meant[p.Cause] || slices.ContainsFunc(problems, func(other Problem) bool {
			return other.Cause == "" && within(other.Field, p.Cause)
		}))
	}
	for _, p := range problems {
		if p.Field != "" && seen[p.Field] || meant[p.Field] || follows(p) {
			continue
		}
		seen[p.Field] = true
		if p.Line == 0 {
			p.Line = d.Line(p.Field)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Problem) int { return a.Line - b.Line })
	return out
}

// List collects problems without lines.
type List []Problem

// Add adds a problem.
func (l *List) Add(field, got, want string) {
	*l = append(*l, Problem{Field: field, Got: got, Want: want})
}

// Follow adds a problem that is dropped if the field cause has one.
func (l *List) Follow(cause, field, got, want string) {
	*l = append(*l, Problem{Field: field, Got: got, Want: want, Cause: cause})
}

// OneOf returns "a", "a or b", "a, b or c".
func OneOf(names ...string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

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
