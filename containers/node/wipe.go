package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// restoringFile is there while the renames of a restore are under way (stages/internal/nodedata).
const restoringFile = ".restoring"

// errRestoring: the data are those of two clusters, or without their keys.
var errRestoring = errors.New("a restore of the cluster's data has not ended")

// restored returns an error if a restore of the data has begun and not ended.
func restored(data string) error {
	_, err := os.Lstat(filepath.Join(data, restoringFile))
	switch {
	case err == nil:
		return errRestoring
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("look for a restore: %w", err)
}

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
	last := []string{pkiDir, restoringFile, lockFile}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(last, a) - slices.Index(last, b) })
	return names
}

// printLine prints a line about the node's progress.
func printLine(line string) { fmt.Fprintln(os.Stderr, "slipway-node: "+line) }
