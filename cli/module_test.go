package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelpOfTheModule: of a function or a flag, dagger shows the first line of its
// comment, so that must be a short sentence.
func TestHelpOfTheModule(t *testing.T) {
	files := token.NewFileSet()
	line := func(at token.Pos) int { return files.Position(at).Line }
	file, err := parser.ParseFile(files, "../ci/main.go", nil, parser.ParseComments)
	require.NoError(t, err)
	said := 0
	check := func(what string, doc *ast.CommentGroup) {
		first, _, _ := strings.Cut(doc.Text(), "\n")
		require.LessOrEqual(t, len(first), 80, what)
		require.Regexp(t, `\.$`, first, what)
		said++
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !f.Name.IsExported() {
			continue
		}
		check(f.Name.Name, f.Doc)
		for _, p := range f.Type.Params.List {
			name := p.Names[0]
			if name.Name == "ctx" {
				continue
			}
			for _, c := range file.Comments {
				if line(c.End())+1 == line(name.Pos()) {
					check(f.Name.Name+" --"+name.Name, c)
				}
			}
		}
	}
	require.Greater(t, said, 40)
}
