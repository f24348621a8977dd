package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestWhatTestIsAsked(t *testing.T) {
	for says, args := range map[string][]string{
		"give --suite or --component, not both": {"--suite", "smoke", "--component", "gitea"},
		"--parallel is -1; give 0 or more":      {"--parallel", "-1"},
		`unexpected argument "smoke"`:           {"smoke"},
	} {
		code, _, errs := slipway(append([]string{"test"}, args...)...)
		require.Equal(t, int(fault.Usage), code, says)
		require.Contains(t, errs, says)
	}
}

// TestTheSuitesOfTheRelease are what a shell completes.
func TestTheSuitesOfTheRelease(t *testing.T) {
	code, out, _ := slipway("__complete", "test", "--suite", "")
	require.Zero(t, code)
	require.Contains(t, out, "smoke\nfull\napps-deploy\napps-check\napps-destroy\n")
}
