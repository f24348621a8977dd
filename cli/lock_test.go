package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a lock.yaml that the user names is the user's to correct.
func TestLockUpdateOfAWrongFile(t *testing.T) {
	for what, c := range map[string]struct {
		text string
		says []string
	}{
		"no lock":      {"- one\n", []string{"LCK-003"}},
		"unknown keys": {"version: 1\ncolour: red\n", []string{"LCK-003", "colour"}},
		"problems":     {"version: 1\nimages: [{name: A, version: v1}]\n", []string{"LCK-003", `"A" is no name`, `"v1" is no version`, "suite: is required"}},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "my-lock.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o644))
			code, _, errs := slipway("lock", "update", "--file", file)
			require.Equal(t, 2, code, errs)
			for _, s := range append(c.says, "read "+file, "remedy: correct the file") {
				require.Contains(t, errs, s)
			}
			require.NotContains(t, errs, "git checkout")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.text, string(text), "left as it was")
		})
	}
	code, _, errs := slipway("lock", "update", "--file", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "LCK-002")
}
