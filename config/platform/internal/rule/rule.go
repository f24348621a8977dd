// Package rule has the parts that a JSON schema is completed with.
package rule

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
)

// Rule adds to a schema what is asked of a value.
type Rule func(*jsonschema.Schema)

// Of returns a schema of nothing but the rule.
func Of(r Rule) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	r(s)
	return s
}

// All is all of rules.
func All(rules ...Rule) Rule {
	return func(s *jsonschema.Schema) {
		for _, r := range rules {
			r(s)
		}
	}
}

// Also is a rule beside others that use the same keywords.
func Also(r Rule) Rule { return func(s *jsonschema.Schema) { s.AllOf = append(s.AllOf, Of(r)) } }

// Not is a value that breaks the rule.
func Not(r Rule) Rule { return func(s *jsonschema.Schema) { s.Not = Of(r) } }

// AnyOf is a value that keeps at least one of rules.
func AnyOf(rules ...Rule) Rule {
	return func(s *jsonschema.Schema) {
		for _, r := range rules {
			s.AnyOf = append(s.AnyOf, Of(r))
		}
	}
}

// Match is a text that matches the pattern.
func Match(pattern string) Rule { return func(s *jsonschema.Schema) { s.Pattern = pattern } }

// OneOf is one of values.
func OneOf[T any](values ...T) Rule {
	return func(s *jsonschema.Schema) {
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	}
}

// Between is a number in a range.
func Between(least, most int) Rule {
	return func(s *jsonschema.Schema) {
		s.Minimum, s.Maximum = json.Number(fmt.Sprint(least)), json.Number(fmt.Sprint(most))
	}
}

// Least is a list of at least n items.
func Least(n uint64) Rule { return func(s *jsonschema.Schema) { s.MinItems = &n } }

// Some is a mapping with at least one entry.
func Some(s *jsonschema.Schema) { s.MinProperties = new(uint64(1)) }

// Empty is a list or mapping without entries.
func Empty(s *jsonschema.Schema) { s.MaxItems, s.MaxProperties = new(uint64), new(uint64) }

// None is no value at all.
func None(s *jsonschema.Schema) { *s = *jsonschema.FalseSchema }

// Each is a rule for the items of a list.
func Each(r Rule) Rule { return func(s *jsonschema.Schema) { r(s.Items) } }

// Values is a rule for the values of a mapping.
func Values(r Rule) Rule { return func(s *jsonschema.Schema) { r(s.AdditionalProperties) } }

// Keys is a rule for the keys of a mapping.
func Keys(r Rule) Rule { return func(s *jsonschema.Schema) { s.PropertyNames = Of(r) } }

// Field is a rule for a field of a struct, which need not be there.
func Field(name string, r Rule) Rule {
	return func(s *jsonschema.Schema) {
		if s.Properties == nil {
			s.Properties = jsonschema.NewProperties()
		}
		p, ok := s.Properties.Get(name)
		if !ok {
			p = &jsonschema.Schema{}
			s.Properties.Set(name, p)
		}
		r(p)
	}
}

// With is a struct that has these fields.
func With(names ...string) Rule {
	return func(s *jsonschema.Schema) { s.Required = append(s.Required, names...) }
}

// ExactlyOne is a struct that has one of these fields.
func ExactlyOne(names ...string) Rule {
	return func(s *jsonschema.Schema) {
		for _, name := range names {
			s.OneOf = append(s.OneOf, Of(With(name)))
		}
	}
}

// Contains is a list with an item that keeps the rule.
func Contains(r Rule) Rule { return func(s *jsonschema.Schema) { s.Contains = Of(r) } }

// When is a rule for structs whose field has one of these values.
func When[T any](field string, values []T, then Rule) Rule {
	return If(All(With(field), Field(field, OneOf(values...))), then)
}

// If is a rule for values that keep another one.
func If(condition, then Rule) Rule {
	return func(s *jsonschema.Schema) {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: Of(condition), Then: Of(then)})
	}
}

// Path is a relative path that does not lead out of its directory.
func Path(s *jsonschema.Schema) {
	s.Not = Of(Match(`(^|/)(\.\.)?(/|$)|(^|/)\./|/\.$|\\`))
}
