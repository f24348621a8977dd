package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// kept is a deployment whose cluster keeps running between its commands, which are those
// of the command line tool.
type kept struct {
	deployment
	config     string // file
	kubeconfig string // file, for this machine
}

// with is the same deployment with another configuration.
func (k *kept) with(config string) *kept {
	other := *k
	other.config = config
	return &other
}

func (k *kept) command(ctx context.Context, command string, args ...string) *exec.Cmd {
	return k.CLI(ctx, command, append([]string{"--config", k.config}, args...)...)
}

// cli runs a command to its end.
func (k *kept) cli(t *testing.T, command string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	r := finish(t, k.command(ctx, command, args...))
	if command != "toolchain" && command != "kubeconfig" {
		k.printed.add(r.out + r.err)
	}
	t.Logf("slipway %s %s (%s): exit %d after %s", command, strings.Join(args, " "), k.Name, r.code, r.took.Round(100*time.Millisecond))
	return r
}

// must is cli that succeeds.
func (k *kept) must(t *testing.T, command string, args ...string) result {
	t.Helper()
	r := k.cli(t, command, args...)
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	return r
}

// tool runs a command of the program that is on no deployment, and returns what it prints.
func (k *kept) tool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(k.Bundle, "bin/slipway"), args...)
	cmd.Env = append(os.Environ(), "SLIPWAY_CONFIG_DIR="+k.Config)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// begun is a command that runs beside the test.
type begun struct {
	cmd *exec.Cmd
	out transcript
}

func (k *kept) begin(t *testing.T, command string, args ...string) *begun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	t.Cleanup(cancel)
	return start(t, k.command(ctx, command, args...))
}

func start(t *testing.T, cmd *exec.Cmd) *begun {
	t.Helper()
	b := &begun{cmd: cmd}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.out
	require.NoError(t, b.cmd.Start())
	return b
}

// Write makes a transcript one of what a command prints.
func (t *transcript) Write(p []byte) (int, error) {
	t.add(string(p))
	return len(p), nil
}

func (b *begun) printed() string { return b.out.String() }

// sees waits until the command has printed a text.
func (b *begun) sees(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !strings.Contains(b.printed(), text); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not print %q:\n%s", text, slipway.Tail(b.printed()))
		}
	}
}

// wait returns the command's exit code.
func (b *begun) wait(t *testing.T) int {
	t.Helper()
	err := b.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

func (k *kept) kubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(k.Bundle, "bin", "kubectl"), append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
}

// kubectl returns what it prints.
func (k *kept) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	r := finish(t, k.kubectlCommand(t.Context(), args...))
	require.Zero(t, r.code, "kubectl %s: %s", strings.Join(args, " "), r.err)
	return r.out
}

// shell runs a script in the toolchain, connected to the cluster.
func (k *kept) shell(t *testing.T, script string) string {
	t.Helper()
	return k.must(t, "toolchain", "--", "sh", "-ceu", script).out
}

// report exports the directory of the last run.
func (k *kept) report(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "report")
	k.must(t, "report", "--out", dir)
	return dir
}

// objects decodes a list of objects of the platform's namespace.
func (k *kept) objects(t *testing.T, kinds string, into any, args ...string) {
	t.Helper()
	args = append([]string{"get", kinds, "-n", "identity", "-o", "json"}, args...)
	require.NoError(t, json.Unmarshal([]byte(k.kubectl(t, args...)), into))
}

// generated tells the Secrets of the platform that an install makes, and what is in them,
// a line for each.
func (k *kept) generated(t *testing.T) string {
	t.Helper()
	return k.kubectl(t, "get", "secrets", "-n", "identity", "-l", "app.kubernetes.io/managed-by=slipway", "--field-selector", "type=Opaque",
		"--sort-by=.metadata.name", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.data}{\"\\n\"}{end}")
}

// secret is a key of a Secret of the platform.
func (k *kept) secret(t *testing.T, name, key string) string {
	t.Helper()
	value, err := base64.StdEncoding.DecodeString(k.kubectl(t, "get", "secret", "-n", "identity", name, "-o", "jsonpath={.data."+key+"}"))
	require.NoError(t, err)
	require.NotEmpty(t, value)
	return string(value)
}

// ran is what of the record of a run the tests look at.
type ran struct {
	Platform struct{ Digest, Commit string }
	Steps    []ranStep
}

type ranStep struct {
	Stage, Step, Status string
	Started, Finished   time.Time
}

// record is the last run's.
func (k *kept) record(t *testing.T) ran {
	t.Helper()
	var r ran
	require.NoError(t, json.Unmarshal([]byte(read(t, k.report(t), "report.json")), &r))
	return r
}

// outcome is how the last run ended.
func (k *kept) outcome(t *testing.T) string {
	t.Helper()
	var s status
	require.NoError(t, json.Unmarshal([]byte(k.must(t, "status", "--output", "json").out), &s))
	return s.Outcome
}

// step is the one of that name, "stage/step".
func (r ran) step(t *testing.T, name string) ranStep {
	t.Helper()
	at := slices.IndexFunc(r.Steps, func(s ranStep) bool { return s.Stage+"/"+s.Step == name })
	require.GreaterOrEqual(t, at, 0, name)
	return r.Steps[at]
}

// requireOrder asserts that each of some steps began when the one before it had succeeded.
func (r ran) requireOrder(t *testing.T, steps ...string) {
	t.Helper()
	var before time.Time
	for _, name := range steps {
		s := r.step(t, name)
		require.Equal(t, "succeeded", s.Status, name)
		require.False(t, s.Started.Before(before), "%s began before the one before it had succeeded", name)
		before = s.Finished
	}
}

// requireNoRestart asserts that no container of the platform ended but those that were to,
// and that none was held back because it had.
func (k *kept) requireNoRestart(t *testing.T) {
	t.Helper()
	type containers []struct {
		Name         string
		RestartCount int
	}
	var pods struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ InitContainerStatuses, ContainerStatuses containers }
		}
	}
	k.objects(t, "pods", &pods)
	require.GreaterOrEqual(t, len(pods.Items), 7, "three servers, one of them twice, and three Jobs")
	for _, p := range pods.Items {
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			require.Zero(t, c.RestartCount, "%s of %s", c.Name, p.Metadata.Name)
		}
	}
	var jobs struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Failed, Succeeded int }
		}
	}
	k.objects(t, "jobs", &jobs)
	require.Len(t, jobs.Items, 3)
	for _, j := range jobs.Items {
		require.Zero(t, j.Status.Failed, j.Metadata.Name)
		require.Equal(t, 1, j.Status.Succeeded, j.Metadata.Name)
	}
	var events struct {
		Items []struct{ Reason, Message string }
	}
	k.objects(t, "events", &events)
	require.NotEmpty(t, events.Items)
	for _, e := range events.Items {
		require.NotEqual(t, "BackOff", e.Reason, e.Message)
	}
}
