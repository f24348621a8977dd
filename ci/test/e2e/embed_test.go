package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnotherProgramInstalls: a program with Slipway's packages and a provider of its own
// installs, and destroys what it installed.
func TestAnotherProgramInstalls(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-embed")
	program := filepath.Join(t.TempDir(), "embed")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = filepath.Join(root(t), "examples", "embed")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	embed := func(workflow string) string {
		cmd := exec.CommandContext(t.Context(), program, workflow, d.Bundle)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, "%s\n%s", errs.String(), out)
		return string(out)
	}
	t.Cleanup(func() { _ = exec.Command(program, "destroy", d.Bundle).Run() })
	first := embed("install")
	for _, app := range []string{"base", "database", "guestbook"} {
		require.Regexp(t, `(?m)^`+app+` +argocd +\d+ +Synced +Healthy `, first)
	}
	require.Regexp(t, `(?m)^infrastructure/inventory +succeeded `, embed("destroy"))
}
