package docs

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/document"
)

var update = flag.Bool("update", false, "write errors.md")

const intro = "# Errors\n\n<!-- Written from errors.yaml: make generate. -->\n\n" +
	"Each entry has cause, [exit code](using.md#exit-codes) and remedy, as `slipway explain CODE` shows them. After the remedy, run the command again. Codes are never reused. An error with exit code 2 or 3 changed nothing, unless a step failed with it. If several steps fail, the exit code is that of the first.\n"

func TestErrorsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	for _, area := range Errors() {
		fmt.Fprintf(&b, "\n## %s\n", area.Title)
		for _, c := range area.Codes {
			fmt.Fprintf(&b, "\n### %s\n%s Exit %s.\n- %s\n", c.Code, c.Cause, document.OneOf(c.exitCodes()...), c.Remedy)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("errors.md", []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile("errors.md")
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "run make generate")
}

func TestErrorsAreComplete(t *testing.T) {
	known := map[string]bool{}
	for _, area := range Errors() {
		last := ""
		for _, c := range area.Codes {
			code := string(c.Code)
			require.False(t, known[code], "%s is documented twice", code)
			known[code] = true
			prefix, _, _ := strings.Cut(code, "-")
			require.Contains(t, area.Prefixes, prefix, code)
			require.Less(t, last, code, "sort the codes of %s", area.Title)
			last = code
			require.NotEmpty(t, c.Classes, code)
			for _, name := range c.Classes {
				require.Contains(t, Classes(), name, code)
			}
			for _, text := range []string{c.Cause, c.Remedy} {
				require.Regexp(t, "(?s)^[A-Z`].*[.`]$", text, code)
			}
		}
	}
	code := sources(t)
	for name := range code.declared {
		require.True(t, known[name], "%s of %s is not in docs/errors.yaml", name, code.declared[name])
	}
	for name := range known {
		require.NotEmpty(t, code.declared[name], "%s is documented and no constant has it: a code that nothing raises goes, and its number is never used again", name)
		require.True(t, code.tested[name], "no test looks for %s (%s)", name, code.declared[name])
	}
	require.Empty(t, code.written, "use the constant of the package that raises it")
	for _, area := range Errors() {
		for _, c := range area.Codes {
			for class := range code.classes[string(c.Code)] {
				require.Contains(t, c.Classes, class, "%s is raised with a class that docs/errors.yaml does not list", c.Code)
			}
		}
	}
}

// usage is what the repository's Go files do with fault codes.
type usage struct {
	declared map[string]string // the file that declares a code's constant
	tested   map[string]bool   // a test names the code or its constant
	written  []string          // code literals without a constant

	// classes are those that a fault is made with beside its code, in one literal.
	classes map[string]map[string]bool
}

// sources reads every Go file of the repository.
func sources(t *testing.T) usage {
	var prefixes []string
	for _, a := range Errors() {
		prefixes = append(prefixes, a.Prefixes...)
	}
	pattern := `(?:` + strings.Join(prefixes, "|") + `)-\d{3}`
	literal := regexp.MustCompile(`"[^"\n]*\b(` + pattern + `)\b[^"\n]*"`)
	constant := regexp.MustCompile(`(?m)^(?:const|\t)\s*(\w+)(?:\s+fault\.Code)?\s*=\s*"(` + pattern + `)"$`)
	comment := regexp.MustCompile(`(?m)//.*$`)
	raised := regexp.MustCompile(`\bCode:\s*(?:(\w+)\.)?(\w+),\s*Class:\s*fault\.(\w+)`)
	word := regexp.MustCompile(`(?:(\w+)\.)?(\w+(?:-\d{3})?)`)
	out := usage{declared: map[string]string{}, tested: map[string]bool{}, classes: map[string]map[string]bool{}}
	type name struct{ folder, constant string } // its last part is the package
	pairs := map[name][]string{}                // classes in literals of faults
	names := map[name][]string{}                // codes
	words := map[name]bool{}                    // in tests
	err := fs.WalkDir(os.DirFS(".."), ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (file == ".git" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(file) != ".go" || file == "docs/errors_test.go":
			return nil
		}
		text, err := os.ReadFile(path.Join("..", file))
		if err != nil {
			return err
		}
		folder := path.Base(path.Dir(file))
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range word.FindAllStringSubmatch(string(text), -1) {
				words[name{cmp.Or(m[1], folder), m[2]}] = true
				out.tested[m[2]] = true
			}
			return nil
		}
		for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
			out.declared[m[2]] = file
			key := name{folder, m[1]}
			names[key] = append(names[key], m[2])
		}
		for _, m := range raised.FindAllStringSubmatch(string(text), -1) {
			key := name{cmp.Or(m[1], folder), m[2]}
			pairs[key] = append(pairs[key], strings.ToLower(m[3]))
		}
		rest := comment.ReplaceAllString(constant.ReplaceAllString(string(text), ""), "")
		if !strings.HasPrefix(file, "ci/test/") {
			for _, m := range literal.FindAllStringSubmatch(rest, -1) {
				out.written = append(out.written, file+": "+m[1])
			}
		}
		return nil
	})
	require.NoError(t, err)
	for key, classes := range pairs {
		for _, class := range classes {
			if codes := names[key]; len(codes) == 1 { // a name that two packages have tells nothing
				if out.classes[codes[0]] == nil {
					out.classes[codes[0]] = map[string]bool{}
				}
				out.classes[codes[0]][class] = true
			}
		}
	}
	require.NotEmpty(t, out.classes)
	for key := range words {
		for _, c := range names[key] {
			out.tested[c] = true
		}
	}
	slices.Sort(out.written)
	return out
}
