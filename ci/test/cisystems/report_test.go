package cisystems

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// published stands in for dagger: an install ends with CODE, and adds the run NEW to the records if
// that is set.
const published = `#!/bin/sh
echo "$*" >>calls
case "$*" in
*" runs "*) cat runs ;;
*" install") [ -z "$NEW" ] || echo '[{"id": "r1"}, {"id": "'$NEW'"}]' >runs; exit $CODE ;;
esac
`

// TestTheScriptOfTheReportsPage publishes what the install has left, and ends as the install did.
func TestTheScriptOfTheReportsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/report.md"))
	require.NoError(t, err)
	script := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindSubmatch(page)
	require.NotNil(t, script)
	for name, c := range map[string]struct {
		before, code, added string
		publishes           bool
	}{
		"the first":               {before: "[]", code: "0", added: "r2", publishes: true},
		"a good one":              {before: `[{"id": "r1"}]`, code: "0", added: "r2", publishes: true},
		"one that failed":         {before: `[{"id": "r1"}]`, code: "4", added: "r2", publishes: true},
		"one that left no record": {before: `[{"id": "r1"}]`, code: "3"},
		"one that found a lock":   {before: `[{"id": "r1"}]`, code: "6", added: "r2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dagger"), []byte(published), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "runs"), []byte(c.before), 0o600))
			cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", string(script[1]))
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CODE=" + c.code, "NEW=" + c.added}
			out, err := cmd.CombinedOutput()
			require.NotNil(t, cmd.ProcessState, err)
			require.Equal(t, c.code, strconv.Itoa(cmd.ProcessState.ExitCode()), string(out))
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			require.NoError(t, err)
			require.Equal(t, c.publishes, regexp.MustCompile(`(?m)^call report --run r2 export --path report --wipe$`).Match(calls), string(calls))
		})
	}
}
