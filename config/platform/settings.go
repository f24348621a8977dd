package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/slipway-sh/slipway/fault"
)

// schemaURL names the schema of a release's settings while it is compiled.
const schemaURL = "settings.json"

// compile reads the JSON schema of the release's settings. External references are an
// error.
func compile(fsys fs.FS, file string) (*jsonschema.Schema, []byte, error) {
	text, err := fs.ReadFile(fsys, file)
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
	compiled, err := c.Compile(schemaURL)
	return compiled, text, err
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
	return &fault.Fault{Code: CodeSettings, Class: fault.Usage, Op: fmt.Sprintf("check platform.settings for %s %s", r.Name, r.Version), Err: err,
		Fix: "correct platform.settings in the configuration"}
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
	err = r.schema.Validate(doc)
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, err
	}
	var problems []Problem
	printer := message.NewPrinter(language.English)
	var leaves func(e *jsonschema.ValidationError)
	leaves = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			leaves(cause)
		}
		if len(e.Causes) == 0 {
			path := strings.Join(append([]string{"platform", "settings"}, e.InstanceLocation...), ".")
			problems = append(problems, Problem{Field: path, Got: e.ErrorKind.LocalizedString(printer)})
		}
	}
	leaves(invalid)
	return problems, nil
}

// SettingsSchema returns the release's own schema of platform.settings, JSON; nil for a
// release without one.
func (r *Release) SettingsSchema() []byte { return r.settingsText }
