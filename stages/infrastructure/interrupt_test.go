package infrastructure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// slowRoot has a resource that is made at once, and one that needs it and takes
// its time until the file "go" is there; it says with the file "begun" that it
// has begun.
func slowRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`
terraform {
  backend "local" {}
}
resource "terraform_data" "first" {
  input = "a"
}
resource "terraform_data" "second" {
  input = terraform_data.first.output
  provisioner "local-exec" {
    command = "touch %[1]s/begun; n=0; until test -e %[1]s/go || test $n -gt 600; do sleep 0.1; n=$((n+1)); done"
  }
}
output "cluster_name" { value = { name = "c" } }
output "api_endpoint" { value = { url = "https://c" } }
output "storage_class" { value = { name = "s" } }
output "load_balancer" { value = { kind = "node" } }
output "object_store" { value = { kind = "none" } }
output "database" { value = { kind = "in-cluster" } }
`, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600))
	return dir
}

// begun waits until the slow resource has begun.
func begun(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, new(kube.Client).WaitFor(ctx, "the slow resource to begin", 20*time.Millisecond, func(context.Context) (bool, string, error) {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		return err == nil, fmt.Sprint(err), nil
	}))
}

// converges finishes what was interrupted.
func converges(t *testing.T, env *step.Env, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	out, err := terraform(t.Context(), env, contract.TerraformInput{})
	require.NoError(t, err)
	state, err := currentState(t.Context(), env)
	require.NoError(t, err)
	require.Len(t, state.Resources, 2)
	require.Equal(t, state.Serial, out.TerraformSerial)
	again, err := terraform(t.Context(), env, contract.TerraformInput{})
	require.NoError(t, err)
	require.Equal(t, out, again)
}

func TestCancelledApplyStopsInGoodOrderAndConverges(t *testing.T) {
	realTerraform(t)
	dir := slowRoot(t)
	var log bytes.Buffer
	env := newEnv(t, dir, &log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := terraform(ctx, env, contract.TerraformInput{})
		done <- err
	}()
	begun(t, dir)
	cancel()
	require.Error(t, <-done)
	require.Contains(t, log.String(), "Interrupt received", "Terraform was asked, not killed")
	state, err := currentState(t.Context(), env)
	require.NoError(t, err)
	require.NotEmpty(t, state.Resources, "what was made is in the state")
	converges(t, env, dir)
}

func TestKilledApplyConverges(t *testing.T) {
	realTerraform(t)
	dir := slowRoot(t)
	env := newEnv(t, dir, &bytes.Buffer{})
	done := make(chan error, 1)
	go func() {
		_, err := terraform(t.Context(), env, contract.TerraformInput{})
		done <- err
	}()
	begun(t, dir)
	killTerraform(t, filepath.Join(env.ToolsDir, "terraform"))
	err := <-done
	require.Equal(t, fault.Step, fault.ClassOf(err))
	converges(t, env, dir)
}

// killTerraform kills this process's child that runs path.
func killTerraform(t *testing.T, path string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	killed := 0
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		require.NoError(t, err)
		for _, field := range strings.Fields(string(raw)) {
			if exe, err := os.Readlink("/proc/" + field + "/exe"); err == nil && exe == path {
				pid, err := strconv.Atoi(field)
				require.NoError(t, err)
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				killed++
			}
		}
	}
	require.Equal(t, 1, killed)
}
