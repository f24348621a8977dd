package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// completed are what a shell is given to complete the last of these words, without
// descriptions.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	code, out, errs := slipway(append([]string{"__completeNoDesc"}, words...)...)
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[:len(lines)-1] // the last one says how
}

func TestAShellCompletes(t *testing.T) {
	keptDeployments(t, "", "staging", "prod")
	names := []string{"prod", "staging"}
	for _, line := range []string{"use", "use --forget", "install --name", "validate --name", "runs --name", "runs show --name", "env -n", "configure --name", "config migrate --name"} {
		require.Equal(t, names, completed(t, append(strings.Fields(line), "")...), line)
	}
	require.Equal(t, names, completed(t, "logs", "orchestrator/sync", "--name", ""))
	require.Subset(t, completed(t, "lock", ""), []string{"verify"})
	require.NotContains(t, completed(t, ""), "step", "what is hidden")
}

func TestEveryShellHasACompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, errs := slipway("completion", shell)
		require.Zero(t, code, errs)
		require.Contains(t, out, "slipway")
	}
}
