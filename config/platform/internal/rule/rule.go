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

// Each is a rule for the items of a list.
func Each(r Rule) Rule { return func(s *jsonschema.Schema) { r(s.Items) } }

// Values is a rule for the values of a mapping.
func Values(r Rule) Rule { return func(s *jsonschema.Schema) { r(s.AdditionalProperties) } }

// Keys is a rule for the keys of a mapping.
func Keys(r Rule) Rule { return func(s *jsonschema.Schema) { s.PropertyNames = Of(r) } }

// Path is a relative path that does not lead out of its directory.
func Path(s *jsonschema.Schema) {
	s.Not = Of(Match(`(^|/)(\.\.)?(/|$)|(^|/)\./|/\.$|\\`))
}
