package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncTree brings all of dir to disk: one call for the whole file system, for
// a root file system has ten thousand files.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Syncfs(int(f.Fd()))
}
