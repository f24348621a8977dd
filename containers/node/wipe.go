package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// wipe removes everything in the data directory, but not the directory, which is
// a mount. It fails when a node uses it.
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
	var problems []error
	for _, e := range entries {
		if e.Name() == "lock" { // last: it keeps others out
			continue
		}
		problems = append(problems, os.RemoveAll(filepath.Join(s.Data, e.Name())))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("wipe %s: %w", s.Data, err)
	}
	if err := os.Remove(lock.Name()); err != nil {
		return fmt.Errorf("wipe %s: %w", s.Data, err)
	}
	return nil
}

// printLine prints a line about the node's progress.
func printLine(line string) { fmt.Fprintln(os.Stderr, "slipway-node: "+line) }
