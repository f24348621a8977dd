package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// The name of a deployment that never was is probably a mistyped one.
func TestANameUnderWhichNothingWasInstalled(t *testing.T) {
	keptDeployments(t, "", "staging", "prod")
	err := neverInstalled("stagin")
	require.ErrorIs(t, err, &fault.Fault{Code: conductor.CodeNotThere})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, `nothing was ever installed under that name; it does not exist; there are prod, staging; did you mean "staging"?`)

	keptDeployments(t, "")
	require.ErrorContains(t, neverInstalled("x"), "remove deployment x: nothing was ever installed under that name; there are none in ")
}
