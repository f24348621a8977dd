package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
)

func TestLinesAreFoundWithTheirOrigin(t *testing.T) {
	for _, origin := range []string{"", "ABCD"} {
		got, said, ok := contract.ParseLine("34 : [1.2s] | " + contract.Line(origin, "a/b", "apply: 1"))
		require.True(t, ok)
		require.Equal(t, []string{origin, "a/b: apply: 1\n"}, []string{got, said})
	}
	_, said, ok := contract.ParseLine("exec slipway step a/b | slipway: a/b: on")
	require.True(t, ok)
	require.Equal(t, "a/b: on", said)
	for _, line := range []string{"", "noise", "slipway: no step", "slipway step a/b", "slipway[x y]: a/b: no"} {
		_, _, ok := contract.ParseLine(line)
		require.False(t, ok, line)
	}
}

// TestALineIsOneLine, also with the name of an object that contains line breaks.
func TestALineIsOneLine(t *testing.T) {
	require.Equal(t, "slipway: a/b: kept Role team/x slipway: c/d: done\n", contract.Line("", "a/b", "kept Role team/x\nslipway: c/d: done"))
}
