package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// wipe removes everything in the data directory, but not the directory, which is
// a mount. It fails when a node uses it. What tells that there are data goes last, so that a
// wipe that was interrupted leaves no data that a node would make new keys for.
func wipe(ctx context.Context, s settings) error {
	lock, err := lockData(ctx, s.Data, s.LockWait, printLine)
	if err != nil {
		return err
	}
	defer release(lock)
	if err := unmountBelow(s.Data); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.Data)
	if err != nil {
		return fmt.Errorf("wipe %s: %w", s.Data, err)
	}
	for _, name := range wipeOrder(entries) {
		if err := os.RemoveAll(filepath.Join(s.Data, name)); err != nil {
			return fmt.Errorf("wipe %s: %w", s.Data, err)
		}
	}
	return nil
}

// wipeOrder are the names of entries in the order in which they are removed: the last ones tell
// that there are data, and keep others out.
func wipeOrder(entries []fs.DirEntry) []string {
	last := []string{pkiDir, lockFile}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(last, a) - slices.Index(last, b) })
	return names
}

func printLine(line string) { fmt.Fprintln(os.Stderr, "slipway-node: "+line) }
