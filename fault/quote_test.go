package fault_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestQuote(t *testing.T) {
	for _, word := range []string{"", "a", "a b", "a'b", "$(id)", "`id`", "a;b", "a\nb", "*", "~", "~root/x", "-n", "ü", "{a,b}", "a#b", "#a", "!!", "a\\b", "sha256:00", "s3://b?region=a&x=1"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `for w in `+fault.Quote(word)+`; do printf '%s|' "$w"; done`).Output()
		require.NoError(t, err)
		require.Equal(t, word+"|", string(out))
	}
}

// inCommand matches text after which a value is a word of a command that somebody copies.
var inCommand = regexp.MustCompile(`\b(slipway|kubectl|dagger call|curl|helm|ssh-keyscan|docker login|docker buildx imagetools)( [^:;,()\n]*)? $|--[a-z-]+ $`)

// composed are expressions of several words, each quoted, constants, and text that is no command, by file.
var composed = map[string][]string{
	"cli/configure/file.go":                 {"flag"},
	"cli/internal/usage/usage.go":           {"command"},
	"cli/internal/source/source.go":         {"which"},
	"cli/internal/deployment/deployment.go": {"id"},
	"cli/version.go":                        {"c.Version"},
	"containers/node/pki.go":                {"file"},
	"containers/registries/account.go":      {"a.host"},
	"imageref/refused.go":                   {"host", "registry"}, // of references that were checked
	"stages/orchestrator/sync.go":           {"argo.Controller"},
	"stages/postorchestrator/access.go":     {"kube.SystemNamespace", "kube.CA"},
	"stages/tests/workloads.go":             {"platform.DeployApps"},
	"stages/test.go":                        {"of"},
}

// TestValuesInCommandsAreQuoted: whatever a name has in it, a command that Slipway prints does no
// more than it says.
func TestValuesInCommandsAreQuoted(t *testing.T) {
	found, left := 0, map[string]bool{}
	for file, all := range composed {
		for _, e := range all {
			left[file+": "+e] = true
		}
	}
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel("..", path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "ci", "examples", "bin"}, name):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			return err
		}
		for _, v := range values(f) {
			e := short(v.value)
			switch at := filepath.ToSlash(name); {
			case strings.HasSuffix(e, ".Quote()") || e == "Quote()":
				found++
			case slices.Contains(composed[at], e):
				delete(left, at+": "+e)
			default:
				t.Errorf("%s: %s stands in a command without fault.Quote: …%s", files.Position(v.value.Pos()), e, v.before)
			}
		}
		return nil
	}))
	require.Empty(t, left, "expressions that are there no more")
	require.Greater(t, found, 70, "what is looked for is found")
}

type value struct {
	before string
	value  ast.Expr
}

// values are the words of commands in a file, in texts that are joined or formatted.
func values(f *ast.File) []value {
	var out []value
	add := func(before string, x ast.Expr) {
		if inCommand.MatchString(before) {
			out = append(out, value{before[max(0, len(before)-60):], x})
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.ADD {
				return true
			}
			before := ""
			for _, x := range joined(n) {
				if s, ok := text(x); ok {
					before += s
					continue
				}
				add(before, x)
				before += "X"
				ast.Inspect(x, visit)
			}
			return false
		case *ast.CallExpr:
			for i, a := range n.Args {
				format, ok := text(a)
				if !ok || !strings.Contains(format, "%") {
					continue
				}
				formatted(format, n.Args[i+1:], add)
				break
			}
		}
		return true
	}
	ast.Inspect(f, visit)
	return out
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9.*]*[a-zA-Z]`)

func formatted(format string, args []ast.Expr, add func(string, ast.Expr)) {
	before, last := "", 0
	format = strings.ReplaceAll(format, "%%", "")
	for n, at := range verb.FindAllStringIndex(format, -1) {
		before += format[last:at[0]]
		if n >= len(args) {
			return
		}
		if format[at[0]:at[1]] != "%d" {
			add(before, args[n])
		}
		before += "X"
		last = at[1]
	}
}

func joined(e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		return append(joined(b.X), joined(b.Y)...)
	}
	return []ast.Expr{e}
}

func text(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

func short(n ast.Expr) string {
	switch n := n.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return short(n.X) + "." + n.Sel.Name
	case *ast.CallExpr:
		return short(n.Fun) + "()"
	}
	return "?"
}
