package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// script is what the container of a workload, or of its check, runs in release 2.0.0. The
// other releases have the same files.
func script(t *testing.T, file string) string {
	t.Helper()
	var text []byte
	for _, release := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		is, err := os.ReadFile(filepath.Join("../..", release, "tests", file))
		require.NoError(t, err)
		require.True(t, text == nil || string(text) == string(is), "%s of %s", file, release)
		text = is
	}
	all := strings.Split(string(text), "\n---\n")
	var o struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct{ Command []string }
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(all[len(all)-1]), &o))
	command := o.Spec.Template.Spec.Containers[0].Command
	require.Equal(t, []string{"sh", "-euc"}, command[:2])
	return command[2]
}

// starts runs a script in the background until the test ends, and stops it when the
// function that it returns is called.
func starts(t *testing.T, cmd *exec.Cmd) (stop func()) {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	require.NoError(t, cmd.Start())
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	return stop
}

func lines(file string) int {
	text, _ := os.ReadFile(file)
	return strings.Count(string(text), "\n")
}

// TestTheWriter writes into the tables of both releases, through the migrations and back, and
// the check misses none of its rows, unless one is missing.
func TestTheWriter(t *testing.T) {
	s := postgres(t)
	s.seed(t, seedTogether)
	dir, err := os.MkdirTemp("", "writer") // not t.TempDir: the server's user writes to it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // it is the test's own
	notes := filepath.Join(dir, "acknowledged")
	shell := func(file string) *exec.Cmd {
		cmd := s.command(t.Context(), "psql")
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-euc", script(t, file)}
		cmd.Env = append(cmd.Env, "NOTES="+notes, "PATH="+s.bin+":"+os.Getenv("PATH"))
		return cmd
	}
	more := func() {
		before := lines(notes)
		require.Eventually(t, func() bool { return lines(notes) > before }, 20*time.Second, 10*time.Millisecond)
	}
	check := func() (string, error) {
		out, err := shell("writer-check.yaml").CombinedOutput()
		return string(out), err
	}
	stop := starts(t, shell("writer.yaml"))
	more()
	for _, step := range steps {
		s.migration(t, step.name, step.set...)
		more()
	}
	s.migration(t, "EXPAND")
	s.migration(t, "CONTRACT")
	stop() // and begins where it was
	stop = starts(t, shell("writer.yaml"))
	more()
	out, err := check()
	require.NoError(t, err, out)
	rows := strings.TrimPrefix(strings.Split(out, "\n")[0], "count rows-acknowledged ")
	require.Equal(t, "count rows-acknowledged "+rows+"\ncount rows-there "+rows+"\n", out)
	n, err := strconv.Atoi(rows)
	require.NoError(t, err)
	require.Greater(t, n, 6)
	list, err := s.open(t).List(t.Context())
	require.NoError(t, err)
	require.Equal(t, "She floats!", list[0].Message, "the page goes on showing the first rows")

	s.sql(t, "DELETE FROM entries WHERE message = 'written row 2'")
	out, err = check()
	require.Error(t, err)
	require.Contains(t, out, "error: 1 of ")
	stop()
}

// TestTheReader counts answers, and whatever else comes.
func TestTheReader(t *testing.T) {
	dir := t.TempDir()
	notes, answer := filepath.Join(dir, "requests"), filepath.Join(dir, "answer")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nc"), []byte("#!/bin/sh\ncat "+answer+"\n"), 0o755)) //nolint:gosec // it is run
	shell := func(file string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script(t, file))
		cmd.Env = append(os.Environ(), "NOTES="+notes, "PATH="+dir+":"+os.Getenv("PATH"), "GUESTBOOK_SERVICE_HOST=10.0.0.1", "GUESTBOOK_SERVICE_PORT=80")
		return cmd
	}
	says := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(answer+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(answer+".new", answer))
		before := lines(notes)
		require.Eventually(t, func() bool { return lines(notes) > before+1 }, 10*time.Second, 10*time.Millisecond)
	}
	const good = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"message\":\"The slipway is greased.\"}]\n"
	require.NoError(t, os.WriteFile(answer, []byte(good), 0o600))
	starts(t, shell("reader.yaml"))
	says(good)
	out, err := shell("reader-check.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, `^count requests \d+\ncount requests-failed 0\n$`, string(out))

	says("HTTP/1.0 503 Service Unavailable\r\n\r\nThe slipway is greased.\n")
	says("HTTP/1.0 200 OK\r\n\r\n[]\n")
	require.NoError(t, os.Remove(answer))
	before := lines(notes)
	require.Eventually(t, func() bool { return lines(notes) > before+1 }, 10*time.Second, 10*time.Millisecond)
	says(good)
	out, err = shell("reader-check.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, `(?s)failed \S+Z The slipway.*failed \S+Z \[\].*failed \S+Z no answer, exit code 1\ncount requests \d+\ncount requests-failed [1-9]\d*\n$`, string(out))
}
