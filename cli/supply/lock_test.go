package supply

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

func TestLockVerifyComparesTheProgram(t *testing.T) {
	of := func(origin string) *bundle.Bundle {
		return &bundle.Bundle{Index: bundle.Index{Files: []bundle.File{{Name: "slipway", Kind: bundle.Tool, Origin: origin}}}}
	}
	require.NoError(t, sameProgram("sha256:a", of("source:sha256:a")))
	require.ErrorContains(t, sameProgram("sha256:a", of("source:sha256:b")), "its sources are sha256:a, those of the bundle's program sha256:b")
	for _, origin := range []string{"source:sha256:a", "source:"} {
		err := sameProgram("", of(origin))
		require.ErrorIs(t, err, &fault.Fault{Code: codeProgram})
		require.ErrorContains(t, err, "does not know its sources")
	}
}
