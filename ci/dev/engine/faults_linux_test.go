package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/fault"
)

// coded fails the test unless err has the code, a remedy, and says all of it.
func coded(t *testing.T, err error, code string, says ...string) {
	t.Helper()
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.EqualValues(t, code, f.Code)
	require.NotEmpty(t, f.Fix)
	for _, s := range says {
		require.ErrorContains(t, err, s)
	}
}

func TestAStoreThatCannotBeUsed(t *testing.T) {
	alone(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("SLIPWAY_CACHE", filepath.Join(file, "cache"))
	code, _, stderr := engine(t, "env")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-003")
	require.Contains(t, stderr, "SLIPWAY_CACHE")
}

func TestWhoMayRunAnEngine(t *testing.T) {
	c := &control{paths: pathsOf("/srv/cache")}
	require.NoError(t, c.mayRun("linux", 0))
	coded(t, c.mayRun("darwin", 0), "ENG-005", "this is darwin")
	coded(t, c.mayRun("linux", 1000), "ENG-005", "only root can run an engine")
	c.paths.socket = "/" + strings.Repeat("x", maxSocket)
	coded(t, c.mayRun("linux", 0), "ENG-003", "the path of the socket is longer")
}

func TestAMirrorThatCannotBeUsed(t *testing.T) {
	require.NoError(t, buildFault(nil))
	coded(t, buildFault(errors.New("Failed to fetch http://deb.example")), "ENG-003", "build the Dagger engine: Failed to fetch")
}

func TestStopOfARecordThatCannotBeRead(t *testing.T) {
	alone(t)
	p := pathsOf(os.Getenv("SLIPWAY_CACHE"))
	require.NoError(t, os.MkdirAll(p.dir, 0o755))
	require.NoError(t, os.WriteFile(p.pid, []byte("{"), 0o600))
	code, _, stderr := engine(t, "stop")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-006")
	require.Contains(t, stderr, p.pid)
}

func TestAnEngineOfAnotherVersion(t *testing.T) {
	alone(t)
	p := pathsOf(os.Getenv("SLIPWAY_CACHE"))
	require.NoError(t, os.MkdirAll(p.runtime, 0o755))
	require.NoError(t, record{PID: sleeper(t, insideCommand).Process.Pid, Version: "v0.1.0"}.write(p.pid))
	l, err := net.Listen("unix", p.socket)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	code, _, stderr := engine(t, "start")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-006")
	require.Contains(t, stderr, `version "v0.1.0", not `+daggerVersion)
	require.Contains(t, stderr, "make engine-stop engine")
}

// TestAnEngineThatRunsKeepsItsConfiguration: it is not taken for one with another.
func TestAnEngineThatRunsKeepsItsConfiguration(t *testing.T) {
	alone(t)
	p := pathsOf(os.Getenv("SLIPWAY_CACHE"))
	require.NoError(t, os.MkdirAll(p.runtime, 0o755))
	require.NoError(t, record{PID: sleeper(t, insideCommand).Process.Pid, Version: daggerVersion}.write(p.pid))
	l, err := net.Listen("unix", p.socket)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	file := filepath.Join(t.TempDir(), "engine.json")
	code, _, stderr := engine(t, "start", "--config", file)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no such file")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	code, _, stderr = engine(t, "start", "--config", file)
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-006")
	require.Contains(t, stderr, "run engine stop")
}

// TestTheConfigurationOfAnEngine is that of its root, or one that is given.
func TestTheConfigurationOfAnEngine(t *testing.T) {
	root, machine := t.TempDir(), t.TempDir()
	for _, dir := range []string{"etc/dagger", certsDir} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(machine, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(machine, certsDir, "company.crt"), []byte("PEM"), 0o644))
	at := filepath.Join(root, configFile)
	require.NoError(t, os.WriteFile(at, []byte(engineConfig), 0o644))
	for _, c := range []struct{ given, want string }{{"", engineConfig}, {"{}", "{}"}} {
		require.NoError(t, writeEtc(machine, root, c.given))
		text, err := os.ReadFile(at)
		require.NoError(t, err)
		require.Equal(t, c.want, string(text))
		text, err = os.ReadFile(filepath.Join(root, certsDir, "company.crt"))
		require.NoError(t, err)
		require.Equal(t, "PEM", string(text), "an authority of the machine")
	}
	require.Contains(t, engineConfig, `"filters": ["type!=exec.cachemount"]`, "Slipway takes an engine with it for one that keeps volumes")
}

// rooted is a control whose record, if any, is of the process pid. Without root nothing
// takes its lock.
func rooted(t *testing.T, pid int) *control {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root runs engines")
	}
	alone(t)
	c, err := newControl(io.Discard, io.Discard)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(c.paths.runtime, 0o755))
	require.NoError(t, record{PID: pid, Version: daggerVersion, CLI: os.Args[0]}.write(c.paths.pid))
	c.checkout, c.timeout = t.TempDir(), 300*time.Millisecond
	return c
}

// TestAnEngineThatLivesAndDoesNotAnswer is one whose start was killed while it waited: there is
// never a second one beside it.
func TestAnEngineThatLivesAndDoesNotAnswer(t *testing.T) {
	c := rooted(t, sleeper(t, insideCommand).Process.Pid)
	record, err := os.ReadFile(c.paths.pid)
	require.NoError(t, err)
	err = c.start(t.Context(), true)
	coded(t, err, "ENG-006", "runs and does not answer at "+c.paths.host()+": wait for ", "no answer within 300ms", "no such file")
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Contains(t, f.Fix, "make engine-stop engine")
	after, err := os.ReadFile(c.paths.pid)
	require.NoError(t, err)
	require.Equal(t, record, after)

	c.timeout = time.Minute
	time.AfterFunc(100*time.Millisecond, func() {
		if _, err := net.Listen("unix", c.paths.socket); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, c.start(t.Context(), true), "it answers after all")
	require.FileExists(t, c.cliLink())

	require.NoError(t, os.Remove(c.paths.socket))
	require.ErrorContains(t, c.connect(t.Context(), func() bool { return true }), "no such file")
}

// TestTwoStops: the second one waits for the first, which leaves it nothing to do.
func TestTwoStops(t *testing.T) {
	other := sleeper(t, insideCommand)
	c := rooted(t, other.Process.Pid)
	r, lives, err := c.recorded()
	require.NoError(t, err)
	require.True(t, lives)
	release, err := c.store.Lock(t.Context(), build.Key{Name: "engine"})
	require.NoError(t, err)
	says, write := io.Pipe()
	c.stderr = write
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop(t.Context()) }()
	lines := bufio.NewScanner(says)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "waiting")
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	require.NoError(t, os.Remove(c.paths.pid))
	release()
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "none of ours runs")
	require.NoError(t, <-stopped)
	require.NoError(t, c.end(r), "an engine that has ended meanwhile")
}

// TestAnEngineThatTakesTooLong: what was waited for, where, for how long, and
// what was seen last.
func TestAnEngineThatTakesTooLong(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "e.sock")
	cli := filepath.Join(t.TempDir(), "dagger")
	require.NoError(t, os.WriteFile(cli, []byte("#!/bin/sh\necho connecting\nexec /bin/sleep 60\n"), 0o755))
	c := &control{paths: paths{socket: socket, log: filepath.Join(t.TempDir(), "log")}, timeout: 300 * time.Millisecond}
	require.NoError(t, os.WriteFile(c.paths.log, []byte("level=info msg=starting\n"), 0o600))

	running := func() bool { return false }
	err := c.await(t.Context(), cli, running)
	coded(t, err, "ENG-006", "wait for unix://"+socket, "no answer within 300ms", "last seen: dial unix "+socket+": connect: no such file", "msg=starting")

	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	c.timeout = 2 * time.Second
	err = c.await(t.Context(), cli, running)
	coded(t, err, "ENG-006", "ask the engine at unix://"+socket+" for its version: no answer within 2s; last seen:\nconnecting;")

	require.NoError(t, l.Close())
	coded(t, c.await(t.Context(), cli, func() bool { return true }), "ENG-006", "it ended at once: dial unix "+socket, "msg=starting")
}
