package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const lockFile = "lock"

// lockData takes the data directory for this process alone: two etcds on one
// volume would destroy it. It waits for another node up to limit, and tells logLine so. The
// returned file is the lock; closing it, or the end of the process, releases it.
func lockData(ctx context.Context, data string, limit time.Duration, logLine func(string)) (*os.File, error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(data, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	tell := sync.OnceFunc(func() { logLine("waiting for the data directory, which another node uses") })
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			tell()
			return false, nil
		}
		return err == nil, err
	})
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case wait.Interrupted(err):
		err = fmt.Errorf("another node uses this volume; waited %s: stop that session, then start again", limit)
	}
	release(f)
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// release closes what nothing was written to, or whose end is the end of the
// process: an error would change nothing.
func release(c io.Closer) { _ = c.Close() }
