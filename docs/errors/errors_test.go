package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// repository is the code that this test is part of.
func repository(t *testing.T) (*source, []*entry) {
	t.Helper()
	src, err := read(os.DirFS("../.."))
	require.NoError(t, err)
	entries, err := src.entries()
	require.NoError(t, err)
	require.Greater(t, len(entries), 80)
	return src, entries
}

func TestThePageIsWhatTheCodeSays(t *testing.T) {
	src, entries := repository(t)
	want, err := src.render(entries)
	require.NoError(t, err)
	got, err := os.ReadFile("../errors.md")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run make generate")
}

// sample is a repository with one package of ours beside package fault.
func sample(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{
		"go.mod": {Data: []byte("module " + modulePath + "\n")},
		"fault/fault.go": {Data: []byte(`package fault
const (
	// Usage: the command line is wrong.
	Usage Class = 2
	// Step: a step failed.
	Step Class = 4
)
`)},
	}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// plain is a package with one code that follows every rule.
const plain = `package plain

import "github.com/slipway-sh/slipway/fault"

// CodeBad: the file is bad. It cannot be
// read.
// Remedy: correct it:
// ` + "`slipway`" + `
const CodeBad fault.Code = "CFG-001"

func bad(err error) error { return &fault.Fault{Code: CodeBad, Class: fault.Usage, Err: err} }
`

func TestAnEntryIsTheCommentAndTheCode(t *testing.T) {
	src, err := read(sample(map[string]string{
		"plain/plain.go": plain,
		"user/user.go": `package user
import other "github.com/slipway-sh/slipway/plain"
import "github.com/slipway-sh/slipway/fault"
func is(err error) bool { return errors.Is(err, &fault.Fault{Code: other.CodeBad}) }
`,
		"user/user_test.go": `package user
import "github.com/slipway-sh/slipway/plain"
func TestIt(t *testing.T) { require.ErrorIs(t, do(), &fault.Fault{Code: plain.CodeBad}) }
`,
	}))
	require.NoError(t, err)
	entries, err := src.entries()
	require.NoError(t, err)
	require.Len(t, entries, 1)
	e := entries[0]
	require.Equal(t, []any{"The file is bad. It cannot be read.", "Correct it: `slipway`", []string{"usage"}, []string{"plain"}, []string{"user/user_test.go"}},
		[]any{e.cause, e.remedy, e.classes, e.raised, e.asserted})
	page, err := src.render(entries)
	require.NoError(t, err)
	require.Contains(t, string(page), "| 2 | usage | the command line is wrong |\n| 4 | step | a step failed |\n\n## Configuration\n\n### CFG-001\n"+
		"The file is bad. It cannot be read.\n\n- Remedy: Correct it: `slipway`\n- Class: usage (exit code 2)\n- Raised by: [plain](../plain)\n")
}

func TestEveryRuleIsKept(t *testing.T) {
	const comment = "// CodeBad: it is bad.\n// Remedy: mend it.\n"
	declare := func(comment, code, rest string) string {
		return "package p\nimport \"github.com/slipway-sh/slipway/fault\"\n" + comment + "const CodeBad fault.Code = \"" + code + "\"\n" + rest
	}
	const raise = "func bad() error { return &fault.Fault{Code: CodeBad, Class: fault.Step, Op: \"x\"} }\n"
	for what, c := range map[string]struct{ code, says string }{
		"no comment":         {declare("", "CFG-002", raise), "p/p.go:3: CodeBad (CFG-002) lacks its comment"},
		"no remedy":          {declare("// CodeBad: it is bad.\n", "CFG-002", raise), "lacks its comment"},
		"another name":       {declare("// CodeWorse: it is bad.\n// Remedy: mend it.\n", "CFG-002", raise), `does not begin with "CodeBad: "`},
		"no full stop":       {declare("// CodeBad: it is bad\n// Remedy: mend it.\n", "CFG-002", raise), `"It is bad" does not end with a full stop`},
		"no area":            {declare(comment, "XYZ-001", raise), "belongs to no area"},
		"written out":        {declare(comment, "CFG-002", raise+"const text = \"see CFG-002\"\n"), "p/p.go:7: CFG-002 is written out"},
		"declared twice":     {declare(comment, "CFG-002", raise+comment+"const CodeToo = \"CFG-002\"\n"), "CodeToo (CFG-002) is declared before, at p/p.go:5"},
		"another class":      {declare(comment+"// Class: usage.\n", "CFG-002", raise), "its class is usage, and it is raised with step too"},
		"no such class":      {declare(comment+"// Class: step or worse.\n", "CFG-002", raise), "of the classes step, worse one does not exist"},
		"a class too many":   {declare(comment+"// Class: step or usage.\n", "CFG-002", raise), "nothing raises it with class usage"},
		"the class is set":   {declare(comment, "CFG-002", "func bad() error { f := &fault.Fault{Code: CodeBad, Class: fault.Step}; f.Class = worse(); return f }\n"), "the class is not told by p/p.go:6"},
		"the class is taken": {declare(comment, "CFG-002", "func bad(c fault.Class) error { return &fault.Fault{Code: CodeBad, Class: c} }\n"), "the class is not told by p/p.go:6"},
		"the code is given":  {declare(comment, "CFG-002", "func bad() error { return elsewhere(CodeBad) }\n"), "the class is not told by p/p.go:6"},
	} {
		t.Run(what, func(t *testing.T) {
			src, err := read(sample(map[string]string{"p/p.go": c.code}))
			require.NoError(t, err)
			_, err = src.entries()
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestClassesThatTheCodeTells: the simple ways in which a fault gets its class.
func TestClassesThatTheCodeTells(t *testing.T) {
	for what, code := range map[string]string{
		"a literal":    "func bad() error { return &fault.Fault{Code: CodeBad, Class: fault.Step} }",
		"a function":   "func make(op string, code fault.Code) error { return &fault.Fault{Code: code, Class: fault.Step, Op: op} }\nfunc bad() error { return make(\"x\", CodeBad) }",
		"both changed": "func bad(f *fault.Fault) { f.Code, f.Class = CodeBad, fault.Step }",
	} {
		t.Run(what, func(t *testing.T) {
			src, err := read(sample(map[string]string{
				"p/p.go": "package p\nimport \"github.com/slipway-sh/slipway/fault\"\n// CodeBad: it is bad.\n// Remedy: mend it.\nconst CodeBad fault.Code = \"CFG-002\"\n" + code + "\n",
			}))
			require.NoError(t, err)
			entries, err := src.entries()
			require.NoError(t, err)
			require.Equal(t, []string{"step"}, entries[0].classes)
		})
	}
}

func TestModulesShareACode(t *testing.T) {
	files := map[string]string{
		"plain/plain.go": plain,
		"ci/x/go.mod":    "module x\n",
		"ci/x/x.go":      "package main\n// codeBad is that of plain.\nconst codeBad = \"CFG-001\"\nfunc f() error { return errors.New(codeBad + \": bad\") }\n",
	}
	src, err := read(sample(files))
	require.NoError(t, err)
	entries, err := src.entries()
	require.NoError(t, err)
	require.Equal(t, []string{"ci/x", "plain"}, entries[0].raised)

	files["ci/x/x.go"] = strings.Replace(files["ci/x/x.go"], " is that of plain.", ": bad.\n// Remedy: mend it.", 1)
	src, err = read(sample(files))
	require.NoError(t, err)
	_, err = src.entries()
	require.ErrorContains(t, err, "has a remedy at ")
}
