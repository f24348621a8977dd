package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyAClusterThatIsKeptIsUnpublished(t *testing.T) {
	for _, command := range []string{"install", "upgrade", "rollback"} {
		code, _, errs := slipway(command, "--unpublished")
		require.Equal(t, 2, code)
		require.Contains(t, errs, "--unpublished is about the cluster that --keep-cluster leaves: give both", command)
	}
}

func TestAClusterThatNobodyKeeps(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	code, out, errs := slipway("cluster", "--stop", "--name", "dev")
	require.Zero(t, code, errs)
	require.Equal(t, "the cluster of deployment dev does not run\n", out)
}
