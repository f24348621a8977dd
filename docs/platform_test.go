package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
)

// Where the types of platform releases are.
const (
	module  = "github.com/slipway-sh/slipway"
	sources = "config/platform"
)

// platformPages makes platform.schema.json and platform.md from the types of platform releases and
// their comments.
func platformPages(t *testing.T) map[string][]byte {
	t.Helper()
	t.Chdir("..") // AddGoComments takes no other path
	defer t.Chdir("docs")
	var r jsonschema.Reflector
	require.NoError(t, r.AddGoComments(module, sources))
	s := platformSchema(r.CommentMap)
	text, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	page, err := platformPage(s, r.CommentMap)
	require.NoError(t, err)
	return map[string][]byte{"platform.schema.json": append(text, '\n'), "platform.md": page}
}

const platformIntro = `# platform.yaml

<!-- Written by go test ./docs -update; a change made here is undone by it. -->

All fields of a platform release's ` + "`platform.yaml`" + `. [platforms.md](platforms.md) says how to write a release, and what the [kinds of components](platforms.md#components) are.

With this first line, editors with a YAML language server complete and check the file against [platform.schema.json](platform.schema.json), which ` + "`slipway platform schema`" + ` prints:

` + "```" + `yaml
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/platform.schema.json
apiVersion: slipway/v2
` + "```" + `

Paths are relative to the release's directory, with slashes, and stay inside it. A field whose description mentions names in braces may contain [these](#names-in-braces).
`

// platformPage is the reference of all fields.
func platformPage(s *jsonschema.Schema, comments map[string]string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(platformIntro)
	writeTables(&b, s)
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
	b.WriteString("\n## Guidance\nFields of the template that `guidance` names: `{{.Domain}}`. `{{if .On \"web\"}}` tells whether a component is on, `{{.Setting \"web.port\"}}` is a value of `platform.settings`.\n")
	writeFields(&b, fieldsOf[platform.GuidanceData](), "GuidanceData", comments)
	b.WriteString("\n## Approval\nThe template that `approval` names has the functions and fields of guidance, where `.Links` is empty, and these:\n")
	writeFields(&b, fieldsOf[platform.ApprovalData](), "ApprovalData", comments)
	return []byte(b.String()), nil
}

// writeFields writes a list of the fields of a template's data.
func writeFields(b *strings.Builder, names []string, of string, comments map[string]string) {
	b.WriteString("\n")
	for _, name := range names {
		fmt.Fprintf(b, "- `.%s`: %s\n", name, comments[module+"/"+sources+"."+of+"."+name])
	}
}

// constant is a constant's value and what its comment says of it.
type constant struct{ value, comment string }

// constants are those of a type, or whose names begin with it, in their order. Each has a
// comment.
func constants(of string) ([]constant, error) {
	files, err := filepath.Glob(filepath.Join(sources, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []constant
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			list, ok := d.(*ast.GenDecl)
			if !ok || list.Tok != token.CONST {
				continue
			}
			for _, s := range list.Specs {
				c, ok, err := constantOf(s.(*ast.ValueSpec), of)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
				if ok {
					out = append(out, c)
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no constants %s", sources, of)
	}
	return out, nil
}

func constantOf(s *ast.ValueSpec, of string) (c constant, ok bool, err error) {
	named, typed := s.Type.(*ast.Ident)
	if (!typed || named.Name != of) && (s.Type != nil || !strings.HasPrefix(s.Names[0].Name, of)) {
		return c, false, nil
	}
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return c, false, fmt.Errorf("%s is no literal", s.Names[0].Name)
	}
	if c.value, err = strconv.Unquote(literal.Value); err != nil {
		return c, false, err
	}
	c.comment = strings.TrimSpace(s.Comment.Text())
	if c.comment == "" {
		return c, false, fmt.Errorf("%s has no comment beside it", s.Names[0].Name)
	}
	return c, true, nil
}

// fieldsOf are the names that a template which is filled in with T may use.
func fieldsOf[T any]() []string {
	t := reflect.TypeFor[T]()
	var out []string
	for i := range t.NumField() {
		if !t.Field(i).Anonymous {
			out = append(out, t.Field(i).Name)
		}
	}
	return out
}

func TestPlatformPages(t *testing.T) { golden(t, platformPages(t)) }

// TestEveryFieldOfAReleaseIsDescribed in the schema, and by its path in its section of the page.
func TestEveryFieldOfAReleaseIsDescribed(t *testing.T) {
	files := platformPages(t)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(files["platform.schema.json"], &s))
	page := string(files["platform.md"])
	seen := 0
	var below func(path string, s *jsonschema.Schema)
	below = func(path string, s *jsonschema.Schema) {
		if s.Type == "array" && s.Items != nil {
			path, s = path+"[]", s.Items
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			at := strings.TrimPrefix(path+"."+p.Key, ".")
			_, row, nested := strings.Cut(at, ".") // below the heading of its section
			if !nested {
				row = at
			}
			require.NotEmpty(t, p.Value.Description, at)
			seen++
			if p.Value.Properties != nil || p.Value.Items != nil && p.Value.Items.Properties != nil {
				below(at, p.Value)
				continue
			}
			require.Contains(t, page, "| `"+row+"` |", at)
		}
	}
	below("", &s)
	require.Greater(t, seen, 90)
}

func TestConstantsHaveValuesAndComments(t *testing.T) {
	t.Chdir("..")
	values, err := constants("Generate")
	require.NoError(t, err)
	require.Equal(t, constant{"password", "random letters and digits"}, values[0])
	_, err = constants("Nothing")
	require.ErrorContains(t, err, "config/platform has no constants Nothing")
}
