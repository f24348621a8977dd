package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeProc is a /proc with one process.
func fakeProc(t *testing.T, boot string, pid int, stat string) procFS {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sys/kernel/random"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sys/kernel/random/boot_id"), []byte(boot+"\n"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, strconv.Itoa(pid)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(pid), "stat"), []byte(stat), 0o644))
	return procFS(dir)
}

func stat(pid int, command, state string, ticks int) string {
	return fmt.Sprintf("%d (%s) %s 1 %d %d 0 -1 %s%d 0 0\n", pid, command, state, pid, pid, strings.Repeat("0 ", 13), ticks)
}

func TestRecordKnowsItsProcess(t *testing.T) {
	r, err := newRecord(fakeProc(t, "boot-1", 42, stat(42, "engine", "S", 777)), 42)
	require.NoError(t, err)
	require.Equal(t, 42, r.PID)
	require.EqualValues(t, 777, r.Ticks)
	require.Equal(t, "boot-1", r.Boot)

	for what, c := range map[string]struct {
		proc procFS
		want bool
	}{
		"the same":                {fakeProc(t, "boot-1", 42, stat(42, "engine", "R", 777)), true},
		"a command with brackets": {fakeProc(t, "boot-1", 42, stat(42, "a) S 1 (b", "S", 777)), true},
		"the pid given out again": {fakeProc(t, "boot-1", 42, stat(42, "engine", "S", 778)), false},
		"another boot":            {fakeProc(t, "boot-2", 42, stat(42, "engine", "S", 777)), false},
		"a zombie":                {fakeProc(t, "boot-1", 42, stat(42, "engine", "Z", 777)), false},
		"gone":                    {fakeProc(t, "boot-1", 43, stat(43, "engine", "S", 777)), false},
		"unreadable":              {fakeProc(t, "boot-1", 42, "42 (engine"), false},
	} {
		require.Equal(t, c.want, r.alive(c.proc), what)
	}
	require.False(t, record{PID: 1, Ticks: r.Ticks, Boot: r.Boot}.alive(fakeProc(t, "boot-1", 1, stat(1, "init", "S", 777))), "never the machine's first process")
	require.False(t, record{}.alive(proc))
}

func TestRecordOfARealProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	r, err := newRecord(proc, cmd.Process.Pid)
	require.NoError(t, err)
	require.True(t, r.alive(proc))

	path := filepath.Join(t.TempDir(), "engine.pid")
	require.NoError(t, r.write(path))
	read, ok, err := readRecord(path)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, r, read)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.False(t, r.alive(proc))
}

func TestReadRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine.pid")
	_, ok, err := readRecord(path)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, os.WriteFile(path, []byte("1234\n"), 0o644))
	_, _, err = readRecord(path)
	require.ErrorContains(t, err, path)
}
