package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainShowsTheEntryOfACode(t *testing.T) {
	code, out, errs := slipway("explain", "tst-008")
	require.Zero(t, code, errs)
	require.Equal(t, `TST-008

The release has no such suite, or the suite has no test for the installed components.

- Remedy: Name a suite that the error lists.
- Exit code: 2 (usage)
`, out)
}

func TestExplainNamesTheCodesThereAre(t *testing.T) {
	for what, c := range map[string]struct {
		args []string
		says string
	}{
		"a number that is not there": {[]string{"PRV-1"}, `there is no code "PRV-1"; there are PRV-001`},
		"no such prefix":             {[]string{"moon"}, `there is no code "moon"; there are none like it; all codes: https://`},
		"no code":                    {nil, "give one code"},
		"two":                        {[]string{"a", "b"}, "give one code"},
	} {
		t.Run(what, func(t *testing.T) {
			code, out, errs := slipway(append([]string{"explain"}, c.args...)...)
			require.Equal(t, 2, code)
			require.Empty(t, out)
			require.Contains(t, errs, c.says)
			require.Contains(t, errs, "See slipway explain --help.")
		})
	}
}
