package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockFile is the lock on the data directory, in it.
const lockFile = "lock"

// lockData takes the data directory for this process alone: two etcds on one
// volume would destroy it. It waits for another node up to wait, and tells logLine so. The
// returned file is the lock; closing it, or the end of the process, releases it.
func lockData(ctx context.Context, data string, wait time.Duration, logLine func(string)) (*os.File, error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(data, lockFile)
	deadline, told := time.Now().Add(wait), false
	for {
		f, err := tryLock(path)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("lock %s: another node uses this volume; waited %s: stop that session, then start again", path, wait)
		}
		if !told {
			told = true
			logLine("waiting for the data directory, which another node uses")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock on %s: %w", path, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryLock locks path. The error is syscall.EWOULDBLOCK when somebody else has it.
func tryLock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			release(f)
			return nil, err
		}
		// A wipe removes the file: a lock on a file that is not there excludes nobody.
		if same(f, path) {
			return f, nil
		}
		release(f)
	}
}

// release closes what nothing was written to, or whose end is the end of the
// process: an error would change nothing.
func release(c io.Closer) { _ = c.Close() }

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
