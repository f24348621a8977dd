package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestarts(t *testing.T) {
	b := restarts()
	var got []time.Duration
	for range 12 {
		got = append(got, b.Step())
	}
	require.Equal(t, []time.Duration{200e6, 400e6, 800e6, 1.6e9, 3.2e9, 5e9, 5e9, 5e9, 5e9, 5e9, 5e9, 5e9}, got)
}

func TestSuperviseStartsAgainAndTellsTheLastLine(t *testing.T) {
	dir := t.TempDir()
	lines := make(chan string, 100)
	// Fails twice, then stays.
	script := `echo "run $$" >> ` + dir + `/runs; echo first; echo "cannot open the volume" >&2
[ $(wc -l < ` + dir + `/runs) -gt 2 ] || exit 3
exec sleep 1000`
	p := supervise(t.Context(), command{name: "fake", program: "sh", args: []string{"-c", script}, stop: time.Second},
		dir, func(s string) { lines <- s })

	for range 2 {
		line := <-lines
		require.Contains(t, line, "fake ended (exit status 3)")
		require.Contains(t, line, "cannot open the volume")
	}
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "fake.log"))
		return err == nil && strings.Count(string(log), "cannot open the volume") == 3 && p.status().State == "running"
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 2, p.status().Restarts)

	p.end()
	require.Equal(t, "stopped", p.status().State)
	require.Empty(t, lines, "a command that is stopped does not start again")
	runs, err := os.ReadFile(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(runs), "\n"))
}

func TestSuperviseKillsWhatIgnoresSIGTERM(t *testing.T) {
	dir := t.TempDir()
	p := supervise(t.Context(), command{name: "stubborn", program: "sh", args: []string{"-c", `trap "" TERM; echo up; while :; do sleep 0.01; done`}, stop: 50 * time.Millisecond},
		dir, func(string) {})
	require.Eventually(t, func() bool { return p.log.Last() == "up" }, 10*time.Second, time.Millisecond)
	p.end() // returns only when the process is gone
	require.Equal(t, "stopped", p.status().State)
}

func TestSuperviseTellsOfAMissingProgram(t *testing.T) {
	lines := make(chan string, 100)
	p := supervise(t.Context(), command{name: "absent", program: "/nonexistent/program"}, t.TempDir(), func(s string) { lines <- s })
	defer p.end()
	require.Contains(t, <-lines, "absent ended (fork/exec /nonexistent/program")
}

func TestLogRemembersItsLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "x.log")
	l := newLog(path)
	require.Equal(t, "(none)", l.Last())
	_, err := l.Write([]byte("the end\n\nhalf a li"))
	require.NoError(t, err)
	require.Equal(t, "half a li", l.Last())
	_, err = l.Write([]byte("ne\n"))
	require.NoError(t, err)
	require.Equal(t, "half a line", l.Last())
	require.NoError(t, l.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "the end\n\nhalf a line\n", string(text))
}
