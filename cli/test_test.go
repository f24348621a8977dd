package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestWhatTestIsAsked(t *testing.T) {
	for says, args := range map[string][]string{
		"give a suite or --component, not both": {"smoke", "--component", "gitea"},
		"--parallel is -1; give 0 or more":      {"--parallel", "-1"},
		"give one suite":                        {"smoke", "full"},
	} {
		code, _, errs := slipway(append([]string{"test"}, args...)...)
		require.Equal(t, int(fault.Usage), code, says)
		require.Contains(t, errs, says)
	}
}
