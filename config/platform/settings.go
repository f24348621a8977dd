package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/slipway-sh/slipway/bounded"
)

// schemaURL names the schema of a release's settings while it is compiled. It leads
// nowhere, wherever the program runs.
const (
	schemaRoot = "release:///"
	schemaURL  = schemaRoot + "settings"
)

// compile reads the JSON schema of the release's settings. External references are an
// error.
func compile(fsys fs.FS, file string) (*jsonschema.Schema, []byte, error) {
	text, err := bounded.FS(fsys, file, bounded.Written)
	if err != nil {
		return nil, nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, nil, err
	}
	compiled, err := limited(moments(), func() (*jsonschema.Schema, error) { return c.Compile(schemaURL) })
	return compiled, text, schemaFault(err)
}

// schemaFault says in one line why a schema cannot be compiled.
func schemaFault(err error) error {
	if away, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("it refers to %s, and a schema is one file", strings.TrimPrefix(away.URL, schemaRoot))
	}
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if wrong, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			var lines []string
			for _, p := range leaves(wrong) {
				lines = append(lines, p.Field+": "+p.Got)
			}
			return errors.New(strings.Join(lines, "; "))
		}
	}
	return err
}

// CheckSettings checks platform.settings of a configuration against the release's own
// schema. A release without a schema accepts no settings.
func (r *Release) CheckSettings(settings json.RawMessage) error {
	problems, err := r.SettingsProblems(settings)
	if err == nil && len(problems) == 0 {
		return nil
	}
	if err == nil {
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.Field+": "+p.Got)
		}
		err = errors.New(strings.Join(lines, "\n  "))
	}
	return unfit(fmt.Sprintf("check platform.settings for %s %s", r.Name, r.Version), err, "correct platform.settings in the configuration")
}

// SettingsProblems returns the problems of the settings by field, as described by the
// schema library.
func (r *Release) SettingsProblems(settings json.RawMessage) ([]Problem, error) {
	if r.schema == nil {
		if len(settings) > 0 && string(settings) != "{}" {
			return nil, errors.New("this platform release has no settings")
		}
		return nil, nil
	}
	if len(settings) == 0 {
		settings = json.RawMessage("{}")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(settings))
	if err != nil {
		return nil, err
	}
	_, err = limited(moments(), func() (any, error) { return nil, r.schema.Validate(doc) })
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, err
	}
	return leaves(invalid, "platform", "settings"), nil
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

// SettingsSchema returns the release's own schema of platform.settings, JSON; nil for a
// release without one.
func (r *Release) SettingsSchema() []byte { return r.settingsText }
