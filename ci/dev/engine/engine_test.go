package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// engine runs the program in an empty store, with no engine and no Docker
// around unless the test puts one there.
func engine(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if os.Getenv("SLIPWAY_CACHE") == "" {
		t.Setenv("SLIPWAY_CACHE", t.TempDir())
	}
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func alone(t *testing.T) {
	t.Helper()
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	t.Setenv(envRunner, "")
	t.Setenv("PATH", t.TempDir())
}

func TestNothingRuns(t *testing.T) {
	alone(t)
	code, _, stderr := engine(t, "stop")
	require.Zero(t, code)
	require.Contains(t, stderr, "none of ours runs")
	code, stdout, stderr := engine(t, "env")
	require.Equal(t, 3, code, "the class of ENG-008")
	require.Empty(t, stdout, "nothing that a shell would evaluate")
	require.Contains(t, stderr, "ENG-008")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"begin"}, {"stop", "now"}, {"start", "--unknown"}} {
		code, _, stderr := engine(t, args...)
		require.Equal(t, 2, code, "%v", args)
		require.Contains(t, stderr, "usage: engine")
	}
	code, stdout, _ := engine(t, "help")
	require.Zero(t, code)
	require.Contains(t, stdout, "usage: engine")
}

// TestStopSparesOthers leaves a pid file that names a living process which is
// not the engine, as after a restart of the machine.
func TestStopSparesOthers(t *testing.T) {
	alone(t)
	r := record{PID: sleeper(t).Process.Pid, Version: daggerVersion} // its pid belonged to another process
	p := pathsOf(os.Getenv("SLIPWAY_CACHE"))
	require.NoError(t, os.MkdirAll(p.dir, 0o755))
	require.NoError(t, r.write(p.pid))
	code, _, stderr := engine(t, "stop")
	require.Zero(t, code)
	require.Contains(t, stderr, "none of ours runs")
	require.NoFileExists(t, p.pid)
	require.NoError(t, syscall.Kill(r.PID, 0), "the other process was ended")
}

func TestStartUsesAnEngineThatAnswers(t *testing.T) {
	alone(t)
	socket := filepath.Join(t.TempDir(), "e.sock")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	t.Setenv(envRunner, "unix://"+socket)
	bin := t.TempDir()
	script := "#!/bin/sh\necho 'dagger " + daggerVersion + " (image) linux/amd64'\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "dagger"), []byte(script), 0o755))
	t.Setenv("PATH", bin)
	checkout := fakeCheckout(t)

	code, _, stderr := engine(t, "start")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "unix://"+socket+" answers; using it")
	target, err := os.Readlink(filepath.Join(checkout, "bin/dagger"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(bin, "dagger"), target)

	code, stdout, stderr := engine(t, "env")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "export "+envRunner+"='unix://"+socket+"'\n")
	require.Contains(t, stdout, "export "+envCLI+"='"+filepath.Join(checkout, "bin/dagger")+"'\n")

	require.NoError(t, l.Close())
	code, _, stderr = engine(t, "env")
	require.Equal(t, 3, code, "preflight")
	require.Contains(t, stderr, "unset "+envRunner)
}

// fakeCheckout makes a repository with nothing in it the working folder.
func fakeCheckout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "containers/lock"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ci/dev/engine"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "containers/lock/lock.yaml"), nil, 0o644))
	t.Chdir(filepath.Join(dir, "ci/dev/engine"))
	return dir
}

func TestPaths(t *testing.T) {
	p := pathsOf("/srv/cache")
	require.Equal(t, "unix:///srv/cache/engine/run/engine.sock", p.host())
	require.NotEqual(t, p.network, pathsOf("/srv/other").network, "two stores, two networks")
	require.LessOrEqual(t, len(p.network+"0"), 15, "the name of a network interface")
}

func TestEnvLines(t *testing.T) {
	require.Equal(t, []string{
		`export _EXPERIMENTAL_DAGGER_RUNNER_HOST='unix:///it'\''s/e.sock'`,
		`export _EXPERIMENTAL_DAGGER_CLI_BIN='/c/bin/dagger'`,
		`export DO_NOT_TRACK=1`,
		`export DAGGER_NO_NAG=1`,
		`export PATH='/c/bin':"$PATH"`,
	}, envLines("unix:///it's/e.sock", "/c/bin/dagger", "/c/bin", "/usr/bin:/bin"))
	require.NotContains(t, strings.Join(envLines("", "/c/bin/dagger", "/c/bin", "/c/bin:/bin"), "\n"), "PATH")
}

func TestFreeCIDR(t *testing.T) {
	addrs := func(cidrs ...string) []*net.IPNet {
		var all []*net.IPNet
		for _, c := range cidrs {
			ip, n, err := net.ParseCIDR(c)
			require.NoError(t, err)
			all = append(all, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return all
	}
	for _, c := range []struct {
		taken []string
		want  string
	}{
		{nil, "10.87.0.0/16"},
		{[]string{"192.168.1.5/24", "fe80::1/64"}, "10.87.0.0/16"},
		{[]string{"10.87.3.1/24"}, "10.88.0.0/16"},
		{[]string{"10.80.0.1/12"}, "10.96.0.0/16"},
	} {
		got, err := freeCIDR(addrs(c.taken...))
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v", c.taken)
	}
	_, err := freeCIDR(addrs("10.1.2.3/8"))
	require.ErrorContains(t, err, "all taken")
}

func TestBuildFaultNamesTheRemedy(t *testing.T) {
	var f *fault.Fault
	require.ErrorAs(t, buildFault(errors.New("main.go:1:1: syntax error")), &f)
	require.EqualValues(t, "ENG-003", f.Code)
	for _, fix := range []string{"module proxy", "SLIPWAY_CACHE", "the message above"} {
		require.Contains(t, f.Fix, fix)
	}
	require.NoError(t, buildFault(nil))
}
