package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryCodeIsRaisedAndTested: the program raises every code, and a test shows
// that it does.
func TestEveryCodeIsRaisedAndTested(t *testing.T) {
	src, entries := repository(t)
	var errs []error
	for _, e := range entries {
		errs = append(errs, reached(src.fsys, e))
	}
	require.NoError(t, errors.Join(errs...))
}

// reached says what is missing when a code is raised nowhere, or when no test
// makes the program raise it.
func reached(fsys fs.FS, e *entry) error {
	switch {
	case len(e.raised) == 0:
		return fmt.Errorf("%s: nothing raises it; remove the constant, and never use its number again", e.place)
	case e.tested == "" && len(e.asserted) == 0:
		return fmt.Errorf("%s: no test that always runs looks for it", e.place)
	case e.tested == "":
		return nil
	case len(e.asserted) > 0:
		return fmt.Errorf("%s: %s looks for it; remove the line \"Tested: %s\"", e.place, e.asserted[0], e.tested)
	}
	text, err := fs.ReadFile(fsys, e.tested)
	if err != nil {
		return fmt.Errorf("%s: %w", e.place, err)
	}
	if !strings.HasPrefix(e.tested, endToEnd+"/") || !strings.Contains(string(text), e.code) {
		return fmt.Errorf("%s: %s is no end-to-end test that names it", e.place, e.tested)
	}
	return nil
}

func TestWhatProvesThatACodeIsReached(t *testing.T) {
	const raised = plain
	unasserted := strings.Replace(plain, "// `slipway`", "// `slipway`\n// Tested: ci/test/e2e/x_test.go.", 1)
	for what, c := range map[string]struct{ code, file, test, says string }{
		"a constant":      {raised, "plain/a_test.go", "func TestIt(t *testing.T) { require.Equal(t, CodeBad, code()) }", ""},
		"a literal":       {raised, "plain/a_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "CFG-001") }`, ""},
		"a part of one":   {raised, "plain/a_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "error CFG-001: x") }`, "no test that always runs"},
		"a fault of ours": {raised, "plain/a_test.go", `import "github.com/slipway-sh/slipway/fault"` + "\nfunc TestIt(t *testing.T) { show(&fault.Fault{Code: CodeBad, Op: \"x\"}) }", "no test that always runs"},
		"not that one":    {raised, "plain/a_test.go", `import "github.com/slipway-sh/slipway/fault"` + "\nfunc TestIt(t *testing.T) { require.NotErrorIs(t, do(), &fault.Fault{Code: CodeBad}) }", "no test that always runs"},
		"a skipped test":  {raised, "plain/a_test.go", "func TestIt(t *testing.T) { real(t); require.Equal(t, CodeBad, code()) }\nfunc real(t *testing.T) { t.Skip() }", "no test that always runs"},
		"end to end":      {raised, "ci/test/e2e/x_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "CFG-001") }`, "no test that always runs"},
		"said to be":      {unasserted, "ci/test/e2e/x_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "CFG-001") }`, ""},
		"said wrongly":    {unasserted, "ci/test/e2e/x_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "nothing") }`, "is no end-to-end test that names it"},
		"without need":    {unasserted, "plain/a_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "CFG-001") }`, "plain/a_test.go looks for it"},
		"not raised":      {strings.Split(plain, "func")[0], "plain/a_test.go", `func TestIt(t *testing.T) { require.Contains(t, out, "CFG-001") }`, "nothing raises it"},
	} {
		t.Run(what, func(t *testing.T) {
			fsys := sample(map[string]string{"plain/plain.go": c.code, c.file: "package plain\n" + c.test + "\n"})
			src, err := read(fsys)
			require.NoError(t, err)
			entries, err := src.entries()
			require.NoError(t, err)
			err = reached(fsys, entries[0])
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}
