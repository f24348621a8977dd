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

// compile reads the JSON schema of the release's settings. A reference to anything
// outside of it is an error.
func compile(fsys fs.FS, file string) (*jsonschema.Schema, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
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
	return c.Compile(schemaURL)
}

// CheckSettings checks what a configuration says in platform.settings against the
// release's own schema. A release without one takes none.
func (r *Release) CheckSettings(settings json.RawMessage) error {
	bad := func(err error) error {
		return &fault.Fault{Code: CodeSettings, Class: fault.Usage, Op: fmt.Sprintf("check platform.settings for %s %s", r.Name, r.Version), Err: err,
			Fix: "correct platform.settings in the configuration"}
	}
	if r.schema == nil {
		if len(settings) > 0 && string(settings) != "{}" {
			return bad(errors.New("this platform release has no settings"))
		}
		return nil
	}
	if len(settings) == 0 {
		settings = json.RawMessage("{}")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(settings))
	if err != nil {
		return bad(err)
	}
	err = r.schema.Validate(doc)
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var lines []string
	printer := message.NewPrinter(language.English)
	var leaves func(e *jsonschema.ValidationError)
	leaves = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			leaves(cause)
		}
		if len(e.Causes) == 0 {
			path := strings.Join(append([]string{"platform", "settings"}, e.InstanceLocation...), ".")
			lines = append(lines, fmt.Sprintf("\n  %s: %s", path, e.ErrorKind.LocalizedString(printer)))
		}
	}
	leaves(invalid)
	return bad(errors.New(strings.TrimPrefix(strings.Join(lines, ""), "\n  ")))
}
