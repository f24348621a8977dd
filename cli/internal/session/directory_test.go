package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

func TestADirectoryThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, says := range map[string]string{"/does/not/exist": "no such file or directory", file: "it is not a directory"} {
		_, err := Directory(nil, path, "", false)
		require.ErrorIs(t, err, &fault.Fault{Code: config.CodeUnreadable})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, "open "+path+": ")
		require.ErrorContains(t, err, says)
	}
}
