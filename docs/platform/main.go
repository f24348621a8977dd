// Writes docs/platform.schema.json and docs/platform.md from the types of platform
// releases and their comments: go run ./docs/platform
package main

import (
	"encoding/json"
	"fmt"
	"os"
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
	if err := write("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "platform:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	return reference.Save(dir, files)
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

Every field of a platform release's ` + "`platform.yaml`" + `. [platforms.md](platforms.md) says how to write one.

Editors with a YAML language server complete and check the file when it begins with this line; [platform.schema.json](platform.schema.json) is the schema, which ` + "`slipway platform schema`" + ` prints as well. ` + "`slipway validate --platform DIR`" + ` checks more than a schema can say: every problem at once, each with its line.

` + "```yaml" + `
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/platform.schema.json
apiVersion: slipway/v2
` + "```" + `

Paths are relative to the release's directory, with slashes, and stay inside of it. *Names in braces*, such as ` + "`{domain}`" + `, are filled in where a field says so: [the names](#names-in-braces).
`

// page is the reference of all fields.
func page(s *jsonschema.Schema, comments map[string]string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(intro)
	reference.Write(&b, s)
	for _, list := range []struct {
		title, about, of string
	}{
		{"Kinds", "What `components[].kind` may be.", "Kind"},
		{"Values of secrets", "What `secrets[].keys[].generate` may be.", "Generate"},
		{"Names in braces", "`{images.NAME}` is the reference of an image by its short name, and `{settings.PATH}` a value of `platform.settings` in the configuration, such as `{settings.theme}`. `{{…}}` and `${…}`, which are others' templates, are left alone. `\\{id}` is the text `{id}`; in double quotes, YAML takes a second backslash.", "Fill"},
	} {
		values, err := constants(list.of)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n## %s\n%s\n\n| | |\n|---|---|\n", list.title, list.about)
		for _, c := range values {
			name := c.value
			if list.of == "Fill" {
				name = "{" + name + "}"
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, c.comment)
		}
	}
	fmt.Fprintf(&b, "\n## Steps\nWhat `phases[].steps` may be, besides `preorchestrator/backup-NAME` of each of the release's data: `%s`.\n", strings.Join((&platform.Release{}).OwnSteps(), "`, `"))
	b.WriteString("\n## Guidance\nWhat the template that `guidance` names is filled in with: `{{.Domain}}`. `{{if .On \"web\"}}` asks whether a component is on, `{{.Setting \"web.port\"}}` is a value of `platform.settings`.\n\n| | |\n|---|---|\n")
	for _, name := range fieldsOf[platform.GuidanceData]() {
		fmt.Fprintf(&b, "| `.%s` | %s |\n", name, comments[module+"/"+sources+".GuidanceData."+name])
	}
	b.WriteString("\n## Approval\nWhat the template that `approval` names is filled in with; `{{if .On \"web\"}}` as in guidance.\n\n| | |\n|---|---|\n")
	for _, name := range fieldsOf[platform.ApprovalData]() {
		fmt.Fprintf(&b, "| `.%s` | %s |\n", name, comments[module+"/"+sources+".ApprovalData."+name])
	}
	return []byte(b.String()), nil
}
