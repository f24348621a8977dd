package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder notes what is asked of it and fails its install number failAt.
type recorder struct {
	title  string
	log    *[]string
	failAt int
	count  int
}

var errBroken = errors.New("broken")

func (r *recorder) Install(_ context.Context, name string, k kind) error {
	what := r.title + " " + string(k) + " install " + name
	*r.log = append(*r.log, what)
	if r.count++; r.count == r.failAt {
		return errBroken
	}
	return nil
}

func (r *recorder) Remove(ctx context.Context, name string) error {
	*r.log = append(*r.log, r.title+" remove "+name)
	return ctx.Err()
}

func two(log *[]string, failAt int) []contestant {
	return []contestant{
		{title: "a", name: "x", kinds: []kind{cold, second}, installer: &recorder{title: "a", log: log, failAt: failAt}},
		{title: "b", name: "y", kinds: []kind{cold, second, repeated}, installer: &recorder{title: "b", log: log}},
	}
}

func TestRoundsAlternateAndClean(t *testing.T) {
	var log []string
	var all samples
	require.NoError(t, rounds(t.Context(), two(&log, 0), 2, &all, io.Discard))
	a := []string{"a cold install x", "a second install x", "a remove x"}
	b := []string{"b cold install y", "b second install y", "b repeated install y", "b remove y"}
	var want []string
	for _, part := range [][]string{a, b, b, a} {
		want = append(want, part...)
	}
	require.Equal(t, want, log)
	require.Len(t, all.taken[key("b", repeated)], 2)
	require.Empty(t, all.taken[key("a", repeated)])
}

func TestFailureKeepsTimesAndCleans(t *testing.T) {
	var log []string
	var all samples
	err := rounds(t.Context(), two(&log, 2), 1, &all, io.Discard)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "a, second: broken")
	require.Equal(t, []string{"a cold install x", "a second install x", "a remove x"}, log)
	require.Len(t, all.taken[key("a", cold)], 1)
}

func TestInterruptionStillRemoves(t *testing.T) {
	var log []string
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("ctrl-c"))
	c := two(&log, 1)[0]
	err := c.measure(ctx, new(samples), io.Discard)
	require.ErrorContains(t, err, "ctrl-c")
	require.NotContains(t, err.Error(), "remove", "the removal gets a context of its own")
	require.Equal(t, []string{"a cold install x", "a remove x"}, log)
}

func TestParse(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	_, err := parse(nil, io.Discard)
	require.ErrorContains(t, err, "make bench")
	_, err = parse([]string{"--bundle", "b", "--rounds", "0"}, io.Discard)
	require.ErrorContains(t, err, "rounds")
	_, err = parse([]string{"--bundle", "b", "--only", "static,other"}, io.Discard)
	require.ErrorContains(t, err, "other")
	s, err := parse([]string{"--bundle", "/b"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, settings{bundle: "/b", rounds: 2}, s)
	s, err = parse([]string{"--bundle", "/b", "--only", "static,helmfile"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"static", "helmfile"}, s.only)
}

// What is to fail must fail, and in a step: anything else is no measurement.
func TestAnInstallThatIsToFail(t *testing.T) {
	for script, says := range map[string]string{"exit 4": "", "exit 3": "exit status 3", "exit 0": "it was to fail"} {
		p := &program{command: func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
			require.Equal(t, []string{"install", "x", "--config", "gate"}, append([]string{command, name}, args...))
			return exec.CommandContext(ctx, "sh", "-c", script)
		}, log: io.Discard, broken: []string{"--config", "gate"}}
		err := p.Install(t.Context(), "x", failed)
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
	}
	file, err := brokenAtTheEnd(t.TempDir())
	require.NoError(t, err)
	require.FileExists(t, file)
}

// Every install of a platform is one of that platform.
func TestAnInstallOfAnotherPlatform(t *testing.T) {
	var given []string
	p := &program{command: func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
		given = append([]string{command, name}, args...)
		return exec.CommandContext(ctx, "true")
	}, log: io.Discard, install: []string{"--platform", "dir"}}
	for _, k := range []kind{cold, second} {
		require.NoError(t, p.Install(t.Context(), "x", k))
		require.Equal(t, []string{"install", "x", "--platform", "dir"}, given)
	}
}

// What is no install is a command of its own.
func TestWhatIsNoInstall(t *testing.T) {
	var given []string
	p := &program{command: func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
		given = append([]string{command, name}, args...)
		return exec.CommandContext(ctx, "true")
	}, log: io.Discard, install: []string{"--keep-cluster"}, other: map[kind][]string{planned: {"plan", "--detailed-exitcode"}}}
	require.NoError(t, p.Install(t.Context(), "x", planned))
	require.Equal(t, []string{"plan", "x", "--detailed-exitcode"}, given)
	require.NoError(t, p.Install(t.Context(), "x", cold))
	require.Equal(t, []string{"install", "x", "--keep-cluster"}, given)
}

// A flag that one of the two does not have would end the bench before it began.
func TestRemove(t *testing.T) {
	for _, remove := range [][]string{nil, {"--ignore-not-found"}} {
		var given []string
		p := &program{command: func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
			given = append([]string{command, name}, args...)
			return exec.CommandContext(ctx, "true")
		}, log: io.Discard, remove: remove}
		require.NoError(t, p.Remove(t.Context(), "x"))
		require.Equal(t, append([]string{"destroy", "x"}, remove...), given)
	}
}

// The table tells contestants apart, and each target is about two of them.
func TestTargets(t *testing.T) {
	titles := map[string]bool{}
	for _, c := range (settings{}).contestants("/r", &pins{}, "gate", io.Discard) {
		titles[c.title] = true
	}
	require.Len(t, titles, len(names()))
	for _, target := range targets {
		require.True(t, titles[target.title] && titles[target.other], target.what)
	}
}

// The engine is warmed by removing what an earlier bench left.
func TestReady(t *testing.T) {
	var log []string
	require.NoError(t, ready(t.Context(), two(&log, 0), io.Discard))
	require.Equal(t, []string{"a remove x", "b remove y"}, log)
}

func TestChoose(t *testing.T) {
	all := []contestant{
		{name: "bench-cli", kinds: []kind{cold, second}},
		{name: "bench-kept", kinds: []kind{failed, resumed}},
		{name: "bench-script", kinds: []kind{cold, second, repeated}},
	}
	require.Len(t, settings{}.choose(all), 3)
	require.Equal(t, []contestant{{name: "bench-script", kinds: []kind{cold, second, repeated}}}, settings{only: []string{"script"}}.choose(all))
}
