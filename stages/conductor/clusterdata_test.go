package conductor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAClusterIsSavedUnderTheLock, and the file appears when it is whole.
func TestAClusterIsSavedUnderTheLock(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","show"`: `{"cluster":true}`, `"save-cluster"`: ""})
	file := filepath.Join(t.TempDir(), "saved")
	e.exports = func(dir string) {
		if filepath.Dir(dir) == filepath.Dir(file) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, contract.ClusterFile), []byte("data"), 0o644))
			require.NoFileExists(t, file)
		}
	}
	require.NoError(t, c.SaveCluster(t.Context(), file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "data", string(text))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Contains(t, e.all(), `"slipway","state","hold"`)
	require.Contains(t, e.all(), "SLIPWAY_NODE_DIR")
	require.NotContains(t, e.all(), `"slipway","state","keep"`, "it is no run of its own")
	require.Regexp(t, `"state","hold".*\{stop`, e.all())

	c, _ = conducted(t, map[string]any{`"state","show"`: `{}`})
	require.ErrorIs(t, c.SaveCluster(t.Context(), file), &fault.Fault{Code: CodeNotThere})
	c.Cluster.service = nil
	require.ErrorIs(t, c.SaveCluster(t.Context(), file), &fault.Fault{Code: codeNoCluster})
	require.ErrorIs(t, c.RestoreCluster(t.Context(), file, false), &fault.Fault{Code: codeNoCluster})
}

func TestAClusterIsRestored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "saved")
	require.NoError(t, os.WriteFile(file, []byte("data"), 0o600))
	c, e := conducted(t, map[string]any{`"restore-cluster"`: "slipway-fault: " + lockLost})
	require.NoError(t, c.RestoreCluster(t.Context(), file, true))
	require.Regexp(t, `"slipway","state","restore-cluster","/slipway/in/cluster/saved","--deployment","slipway","--user","","--host","","--run","[^"]+","--force"`, e.all())
	require.Regexp(t, `"state","hold".*\{stop`, e.all())

	c, e = conducted(t, map[string]any{`"restore-cluster"`: "slipway-fault: " + lockLost})
	e.exit, e.fails = 6, `"restore-cluster"`
	require.ErrorIs(t, c.RestoreCluster(t.Context(), file, false), &fault.Fault{Code: lock.CodeLost})
	require.NotContains(t, e.all(), "--force")
	require.Contains(t, e.all(), "stop(kill:true)", "what holds it may stand still")
	require.NotContains(t, e.all(), "{stop}")
	require.ErrorIs(t, c.RestoreCluster(t.Context(), file+"x", false), os.ErrNotExist)
}

// TestAFileOfAnyNameIsRestored, also one that a link leads to.
func TestAFileOfAnyNameIsRestored(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, include := range map[string]string{
		"saved.tar.zst": "saved.tar.zst", "saved [2026-01].tar.zst": "saved??2026-01?.tar.zst", "!*{a,b}?.zst": "???a?b??.zst",
	} {
		file, link := filepath.Join(dir, name), filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.WriteFile(file, []byte("data"), 0o600))
		require.NoError(t, os.Symlink(file, link))
		c, e := conducted(t, map[string]any{`"restore-cluster"`: ""})
		require.NoError(t, c.RestoreCluster(t.Context(), link, false))
		require.Contains(t, e.all(), fmt.Sprintf(`path:%q`, dir))
		require.Contains(t, e.all(), fmt.Sprintf(`include:[%q]`, include))
		require.Contains(t, e.all(), fmt.Sprintf(`"restore-cluster",%q`, "/slipway/in/cluster/"+name))
		matches, err := filepath.Match(include, name)
		require.NoError(t, err)
		require.True(t, matches)
	}
}
