package gotool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSources(t *testing.T) {
	source, err := Checkout()
	require.NoError(t, err)
	own, digest, err := Sources(t.Context(), source)
	require.NoError(t, err)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, digest)
	for _, name := range []string{"main.go", "go.sum", "containers/lock/lock.yaml", "containers/daggercli/attend_unix.go", "containers/daggercli/attend_other.go"} {
		require.True(t, own(name), name)
	}
	for _, name := range []string{"main_test.go", "cli/cli_test.go", "ci/main.go", "README.md"} {
		require.False(t, own(name), name)
	}
	t.Setenv("GOOS", "windows")
	_, elsewhere, err := Sources(t.Context(), source)
	require.NoError(t, err)
	require.Equal(t, digest, elsewhere, "the same on every system")
}
