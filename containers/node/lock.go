package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockFile is the lock on the data directory, in it.
const lockFile = "lock"

// lockData takes the data directory for this process alone: two etcds on one
// volume would destroy it. It waits for another holder up to wait, telling logLine
// who that is. The returned file is the lock; closing it, or the end of the
// process, releases it.
func lockData(ctx context.Context, data string, wait time.Duration, logLine func(string)) (*os.File, error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(data, lockFile)
	deadline := time.Now().Add(wait)
	reported := ""
	for {
		f, err := tryLock(path)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		holder := lockHolder(path)
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("lock %s: another node uses this volume: %s; waited %s: stop that session, then start again", path, holder, wait)
		}
		if reported != holder {
			reported = holder
			logLine("waiting for the data directory, held by " + holder)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock on %s: %w", path, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryLock locks path and writes this process's id into it. The error is
// syscall.EWOULDBLOCK when somebody else has it.
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
			if err := writeHolder(f); err != nil {
				release(f)
				return nil, err
			}
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

func writeHolder(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%s pid %d since %s\n", host, os.Getpid(), time.Now().UTC().Format(time.RFC3339)), 0)
	return err
}

func lockHolder(path string) string {
	b, err := os.ReadFile(path)
	if holder := strings.TrimSpace(string(b)); err == nil && holder != "" {
		return holder
	}
	return "an unknown holder"
}
