package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Lock is a held lock of the store. The kernel releases it when its process
// ends, however it ends.
type Lock struct{ file *os.File }

// Release gives the lock back.
func (l *Lock) Release() { _ = l.file.Close() }

// Lock takes the exclusive lock of key, waiting for whoever holds it until ctx
// ends. The key's digest may be empty for a lock that stands for its name.
func (s *Store) Lock(ctx context.Context, key Key) (*Lock, error) {
	path := filepath.Join(s.root, "locks", key.Name+"-"+key.Digest+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", key, err)
	}
	notified := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", key, err)
		}
		holder := readHolder(path)
		if !notified && s.Waiting != nil {
			s.Waiting(key, holder)
		}
		notified = true
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for %s, which %s holds: %w", key, holder, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
	// For the messages of those who wait; the lock itself does not depend on it.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "process %d", os.Getpid()), 0)
	}
	return &Lock{file: f}, nil
}

func readHolder(path string) string {
	b, err := os.ReadFile(path)
	if holder := strings.TrimSpace(string(b)); err == nil && holder != "" {
		return holder
	}
	return "another process"
}
