package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeviceOf(t *testing.T) {
	const mounts = `23 28 0:21 / /proc rw shared:5 - proc proc rw
28 1 254:0 / / rw shared:1 - ext4 /dev/vda rw
40 28 7:0 /engine/state /var/lib/dagger rw - ext4 /dev/loop3 rw
41 28 7:0 / /var/lib/dagger2 rw - ext4 /dev/vdb rw
`
	require.Equal(t, "/dev/loop3", deviceOf([]byte(mounts), "/var/lib/dagger"))
	require.Equal(t, "/dev/loop3", deviceOf([]byte(mounts), "/var/lib/dagger/worker"))
	require.Equal(t, "/dev/vdb", deviceOf([]byte(mounts), "/var/lib/dagger2"))
	require.Equal(t, "/dev/vda", deviceOf([]byte(mounts), "/var/lib/dagger3"))
}

// TestOnlyALoopDeviceIsFilled: not the disk of the machine.
func TestOnlyALoopDeviceIsFilled(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotEmpty(t, deviceOf(mounts, t.TempDir()))
	d := &deployment{bucket: &bucket{noDisk: skipped("no loop device")}}
	why, ok := isSkipped(d.hasDisk(t.Context()))
	require.True(t, ok)
	require.Equal(t, "no loop device", why)
}

// TestFill: nothing can be written while a disk is full, also once something was removed, and
// afterwards it is as it was.
func TestFill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	unmount, err := mountDisk(t.Context(), filepath.Join(t.TempDir(), "image"), dir)
	if why, ok := isSkipped(err); ok {
		t.Skip(why)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unmount()) })
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.Regexp(t, "^/dev/loop", deviceOf(mounts, dir))

	free := func() int64 {
		var s syscall.Statfs_t
		require.NoError(t, syscall.Statfs(dir, &s))
		return int64(s.Bfree) * s.Bsize
	}
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20), 0o600))
	before := free()
	stop, filled := make(chan struct{}), make(chan error, 1)
	go func() {
		n, err := fill(dir, stop)
		require.Greater(t, n, before*9/10)
		filled <- err
	}()
	full := func() bool {
		file := filepath.Join(dir, "new")
		defer func() { _ = os.Remove(file) }()
		return os.WriteFile(file, make([]byte, 1<<16), 0o600) != nil
	}
	require.Eventually(t, full, 30*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, os.WriteFile(filepath.Join(dir, "another"), make([]byte, 1<<16), 0o600), syscall.ENOSPC)
	require.NoError(t, os.Remove(filepath.Join(dir, "another")))
	require.NoError(t, os.Remove(large))
	require.Eventually(t, full, 30*time.Second, refill)
	close(stop)
	require.NoError(t, <-filled)
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20), 0o600))
	require.InDelta(t, before, free(), 1<<20)
}
