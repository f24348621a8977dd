package conductor

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAReleaseOutlivesItsDirectory: what reads its files later finds them.
func TestAReleaseOutlivesItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/platform/1.0.0")))
	var o Options
	require.NoError(t, o.loadRelease(os.DirFS(dir)))
	require.NoError(t, os.RemoveAll(dir))
	text, err := fs.ReadFile(o.Release.Files(), "charts/gitea/Chart.yaml")
	require.NoError(t, err)
	require.Contains(t, string(text), "name: gitea")
	entries, err := fs.ReadDir(o.Release.Files(), "charts/gitea/templates")
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	require.Regexp(t, "^sha256:", o.ReleaseDigest)
}
