package document_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/document"
)

// TestAliasesThatStandForMuch are refused, in whichever document: a decoder writes each out.
func TestAliasesThatStandForMuch(t *testing.T) {
	large := "s: &x " + strings.Repeat("a", 1<<20) + "\nl: [" + strings.Repeat("*x,", 20) + "]\n"
	for text, says := range map[string]string{
		large:                          "line 2: the aliases down to *x stand for more than 16 MiB",
		"a: b\n---\n" + large:          "line 4: the aliases down to *x stand for more than 16 MiB",
		"{a: b}\nc: d\n---\n" + large:  "line 5: the aliases down to *x stand for more than 16 MiB",
		"a: &x [*x]\n":                 "line 1: the alias *x stands for a value that it is part of",
		"a: &x b\nc: [*x, *x, '*y']\n": "",
		"a: [&, *\n":                   "",
	} {
		err := document.CheckAliases([]byte(text))
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, says)
	}
	_, problems := document.Values([]byte(large))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "stand for more than 16 MiB")
}
