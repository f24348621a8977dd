package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnotherProgramInstalls: a program with Slipway's packages and a provider of its own
// installs, and destroys what it installed. A change of the provider's Terraform root reaches
// what is installed with the bundle as it was.
func TestAnotherProgramInstalls(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-embed")
	install, other := embedding(t), embedding(t, "-overlay", anotherRoot(t))
	embed := func(program, workflow string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, workflow, d.Bundle)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, errs.String())
		}
		return string(out), err
	}
	t.Cleanup(func() { _, _ = embed(install, "destroy") })
	first, err := embed(install, "install")
	require.NoError(t, err, first)
	for _, app := range []string{"base", "database", "guestbook"} {
		require.Regexp(t, `(?m)^`+app+` +argocd +\d+ +Synced +Healthy `, first)
	}

	// The bundle is the same, and the provider's root is the program's.
	again, err := embed(other, "install")
	require.ErrorContains(t, err, "infrastructure/terraform: plan the Terraform root: Resource precondition failed")
	require.Regexp(t, `(?m)^infrastructure/terraform +failed `, again)
	again, err = embed(install, "install")
	require.NoError(t, err, again)
	require.Regexp(t, `(?m)^infrastructure/terraform +(succeeded|reused) `, again)

	gone, err := embed(install, "destroy")
	require.NoError(t, err, gone)
	require.Regexp(t, `(?m)^infrastructure/inventory +succeeded `, gone)
}

// embedding is the program, built with flags.
func embedding(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "embed")
	build := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-ldflags=-s -w", "-o", program}, flags, []string{"."})...)
	build.Dir = filepath.Join(root(t), "examples", "embed")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// anotherRoot is an overlay for go build with which the root of provider local, which the
// program's has, cannot be planned.
func anotherRoot(t *testing.T) string {
	t.Helper()
	file := filepath.Join(root(t), "providers", "local", "terraform", "main.tf")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := write(t, string(text)+`
resource "terraform_data" "rack" {
  lifecycle {
    precondition {
      condition     = var.deployment == ""
      error_message = "the rack is full"
    }
  }
}
`)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	require.NoError(t, err)
	return write(t, string(overlay))
}
