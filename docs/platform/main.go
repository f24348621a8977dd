// Writes docs/platform.schema.json and docs/platform.md from the types of platform
// releases and their comments: go run ./docs/platform
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/docs/internal/reference"
)

// The files, in docs.
const (
	schemaFile = "platform.schema.json"
	pageFile   = "platform.md"
)

// Where the types are.
const (
	module  = "github.com/slipway-sh/slipway"
	sources = "config/platform"
)

func main() {
	files, err := generate()
	if err == nil {
		err = reference.Save("docs", files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform:", err)
		os.Exit(1)
	}
}

// generate makes the files. It reads the repository's sources from the working directory.
func generate() (map[string][]byte, error) {
	var r jsonschema.Reflector
	if err := r.AddGoComments(module, sources); err != nil {
		return nil, err
	}
	s := platform.Schema(r.CommentMap)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	page, err := page(s, r.CommentMap)
	return map[string][]byte{schemaFile: append(text, '\n'), pageFile: page}, err
}

const intro = `# platform.yaml

<!-- Written by go run ./docs/platform; a change made here is undone by it. -->

All fields of a platform release's ` + "`platform.yaml`" + `. [platforms.md](platforms.md) says how to write a release, and what the [kinds of components](platforms.md#components) are.

With this first line, editors with a YAML language server complete and check the file against [platform.schema.json](platform.schema.json), which ` + "`slipway platform schema`" + ` prints:

` + "```" + `yaml
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/platform.schema.json
apiVersion: slipway/v2
` + "```" + `

Paths are relative to the release's directory, with slashes, and stay inside it. A field whose description mentions names in braces may contain [these](#names-in-braces).
`

// page is the reference of all fields.
func page(s *jsonschema.Schema, comments map[string]string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(intro)
	reference.Write(&b, s)
	for _, list := range []struct {
		title, about, of string
	}{
		{"Values of secrets", "Values of `secrets[].keys[].generate`.", "Generate"},
		{"Names in braces", "`{images.NAME}` is the reference of an image by its short name, `{settings.PATH}` a value of the configuration's `platform.settings`, such as `{settings.theme}`. `{{…}}` and `${…}`, which belong to other templates, stay. `\\{id}` is the text `{id}`; YAML needs a second backslash in double quotes.", "Fill"},
	} {
		values, err := constants(list.of)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n## %s\n%s\n\n", list.title, list.about)
		for _, c := range values {
			name := c.value
			if list.of == "Fill" {
				name = "{" + name + "}"
			}
			fmt.Fprintf(&b, "- `%s`: %s\n", name, c.comment)
		}
	}
	guidance, approval := fieldsOf[platform.GuidanceData](), fieldsOf[platform.ApprovalData]()
	b.WriteString("\n## Guidance\nFields of the template that `guidance` names: `{{.Domain}}`. `{{if .On \"web\"}}` tells whether a component is on, `{{.Setting \"web.port\"}}` is a value of `platform.settings`.\n")
	fields(&b, guidance, "GuidanceData", comments)
	own := slices.DeleteFunc(slices.Clone(approval), func(name string) bool { return slices.Contains(guidance, name) })
	lacking := slices.DeleteFunc(guidance, func(name string) bool { return slices.Contains(approval, name) })
	fmt.Fprintf(&b, "\n## Approval\nThe template that `approval` names has the functions and fields of guidance, except `.%s`, and these:\n", strings.Join(lacking, "` and `."))
	fields(&b, own, "ApprovalData", comments)
	return []byte(b.String()), nil
}

// fields writes a list of the fields of a template's data.
func fields(b *strings.Builder, names []string, of string, comments map[string]string) {
	b.WriteString("\n")
	for _, name := range names {
		fmt.Fprintf(b, "- `.%s`: %s\n", name, comments[module+"/"+sources+"."+of+"."+name])
	}
}
