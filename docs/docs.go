// Package docs holds the pages for people, the table of the fault codes, of which the
// program shows entries, and the schema of platform releases, which it prints.
package docs

import (
	_ "embed"
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

//go:embed errors.yaml
var errorsYAML []byte

//go:embed platform.schema.json
var platformSchema string

// PlatformSchema returns the JSON schema of platform.yaml, with what each field is for.
func PlatformSchema() string { return platformSchema }

// Area is a group of fault codes.
type Area struct {
	Title    string   `json:"area"`
	Prefixes []string `json:"prefixes"` // of its codes: "CFG"
	Codes    []Code   `json:"codes"`    // sorted
}

// Code is what is documented about one fault code.
type Code struct {
	Code    fault.Code `json:"code"`
	Classes []string   `json:"class"`  // those it is raised with: "usage"
	Cause   string     `json:"cause"`  // Markdown
	Remedy  string     `json:"remedy"` // Markdown
}

// Errors returns the documented fault codes by area. It panics when errors.yaml,
// which is part of the program, is malformed.
func Errors() []Area {
	var areas []Area
	if err := yaml.UnmarshalStrict(errorsYAML, &areas); err != nil {
		panic("docs/errors.yaml: " + err.Error())
	}
	return areas
}

// Text is the entry of the code without its heading, in Markdown.
func (c Code) Text() string {
	exits := c.exitCodes()
	for i, name := range c.Classes {
		exits[i] += " (" + name + ")"
	}
	return fmt.Sprintf("%s\n\n- Remedy: %s\n- Exit code: %s\n", c.Cause, c.Remedy, document.OneOf(exits...))
}

// exitCodes are those of the code's classes.
func (c Code) exitCodes() []string {
	exits := make([]string, len(c.Classes))
	for i, name := range c.Classes {
		exits[i] = strconv.Itoa(int(Classes()[name]))
	}
	return exits
}

// Classes are the names of the fault classes.
func Classes() map[string]fault.Class {
	return map[string]fault.Class{
		"ok": fault.OK, "bug": fault.Bug, "usage": fault.Usage, "preflight": fault.Preflight,
		"step": fault.Step, "timeout": fault.Timeout, "locked": fault.Locked, "cancelled": fault.Cancelled,
	}
}
