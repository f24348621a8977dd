package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// wipe removes everything in the data directory but its lock. It fails when a node uses it.
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

// wipeOrder are the names of what is removed of entries, in that order. The keys tell that there
// are data, and go last, so that a wipe that was interrupted leaves no data that a node would make
// new ones for.
func wipeOrder(entries []fs.DirEntry) []string {
	var names []string
	for _, e := range entries {
		if name := e.Name(); name != pkiDir && name != lockFile {
			names = append(names, name)
		}
	}
	return append(names, pkiDir)
}

func printLine(line string) { fmt.Fprintln(os.Stderr, "slipway-node: "+line) }
