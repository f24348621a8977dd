package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestUpgradeMatrix runs two cells beside each other; `make matrix` runs all that there are.
func TestUpgradeMatrix(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	results := filepath.Join(t.TempDir(), "results")
	matrix := func(args ...string) result {
		t.Helper()
		return finish(t, d.CLI(t.Context(), "upgrade-matrix", append([]string{"--name", "e2e-mx", "--out", results}, args...)...))
	}
	r := matrix("--from", "1.1.0", "--to", "1.0.0")
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLT-021", "no way leads back")
	require.NoDirExists(t, results)

	const administrators = "canary+B/b=<w>& of the administrator"
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte(administrators+"\n"), 0o600))
	config := write(t, configured+fmt.Sprintf("platform: {secrets: {adminPassword: %q}}\n", "file:"+password))
	styles, args := []string{"graceful", "in-place"}, []string{"--name", "e2e-mx", "--out", results, "--config", config}
	r = finish(t, d.readme(t, t.TempDir(), "slipway upgrade-matrix", args...))
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	wrote := contents(t, results)
	require.Greater(t, len(wrote), 20)
	wrote["what the command printed"] = r.out + r.err
	requireNone(t, map[string][]string{"of the administrator": forms(administrators)}, wrote)
	var made struct {
		Cells []struct {
			Cell       struct{ From, To, Style string }
			Deployment string
			Outcome    string
			Counts     map[string]int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, results, "matrix.json")), &made))
	require.Len(t, made.Cells, len(styles))
	page := read(t, results, "matrix.html")
	screenshot(t, filepath.Join(results, "matrix.html"), "matrix", 270)
	for i, style := range styles {
		c := made.Cells[i]
		require.Equal(t, []string{"1.1.0", "2.0.0", style, "upgraded"}, []string{c.Cell.From, c.Cell.To, c.Cell.Style, c.Outcome})
		require.Contains(t, page, `href="`+c.Deployment+`/report/report.html"`)
		require.Contains(t, read(t, results, c.Deployment+"/report/summary.md"), "upgrade")
		require.Contains(t, r.out, c.Deployment)
		require.Greater(t, c.Counts["rows-acknowledged"], int64(10), "rows were written all the time")
		require.Equal(t, c.Counts["rows-acknowledged"], c.Counts["rows-there"])
		require.Greater(t, c.Counts["requests"], int64(20), "and somebody asked")
		if style == "graceful" {
			require.Zero(t, c.Counts["requests-failed"])
		}
		require.Contains(t, read(t, results, c.Deployment+"/destroy.log"), "nothing is left")
	}
	require.Equal(t, len(styles), strings.Count(read(t, results, "junit.xml"), "<testcase "))
	require.Equal(t, len(styles), strings.Count(read(t, results, "junit.xml"), "rows-there "))

	r = matrix("--from", "1.0.0", "--to", "1.1.0", "--style", "in-place,graceful", "--shard", "3/2")
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, `"3/2" is no shard`)
}
