package document

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/slipway-sh/slipway/bounded"
)

// schemaURL names a schema while it is compiled. It leads nowhere, wherever the program runs.
const (
	schemaRoot = "release:///"
	schemaURL  = schemaRoot + "settings"
)

// Schema is a JSON schema that others wrote.
type Schema struct{ compiled *jsonschema.Schema }

// CompileSchema compiles a JSON schema. External references are an error.
func CompileSchema(text []byte) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	compiled, err := bounded.Within(bounded.Moment(), func() (*jsonschema.Schema, error) { return c.Compile(schemaURL) })
	if err != nil {
		return nil, schemaFault(err)
	}
	return &Schema{compiled}, nil
}

// schemaFault says in one line why a schema cannot be compiled.
func schemaFault(err error) error {
	if away, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("it refers to %s, and a schema is one file", strings.TrimPrefix(away.URL, schemaRoot))
	}
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if wrong, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			return errors.New(InLines(leaves(wrong), "; "))
		}
	}
	return err
}

// Problems returns what is wrong with a JSON document that is at path, as described by the schema
// library.
func (s *Schema) Problems(text []byte, path ...string) ([]Problem, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	_, err = bounded.Within(bounded.Moment(), func() (any, error) { return nil, s.compiled.Validate(doc) })
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, err
	}
	return leaves(invalid, path...), nil
}

// leaves are the problems of a document that is at path.
func leaves(e *jsonschema.ValidationError, path ...string) []Problem {
	var out []Problem
	for _, cause := range e.Causes {
		out = append(out, leaves(cause, path...)...)
	}
	if len(e.Causes) == 0 {
		field := strings.Join(append(slices.Clone(path), e.InstanceLocation...), ".")
		out = append(out, Problem{Field: field, Got: e.ErrorKind.LocalizedString(message.NewPrinter(language.English))})
	}
	return out
}

// InLines joins problems without lines that say what is there, "field: got".
func InLines(problems []Problem, between string) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Field+": "+p.Got)
	}
	return strings.Join(lines, between)
}
