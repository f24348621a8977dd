// Command errors writes docs/errors.md from the code: an entry for each fault
// code, out of the comment of its constant and of where it is raised. It reads
// the sources and runs none of them.
//
//	go run ./docs/errors
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// page is the file that is written, below the repository's root.
const page = "docs/errors.md"

func main() { os.Exit(run(os.Stderr)) }

// run is the whole program; it returns the exit code.
func run(errw io.Writer) int {
	root, err := findRoot()
	if err == nil {
		err = write(root)
	}
	if err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

func write(root string) error {
	src, err := read(os.DirFS(root))
	if err != nil {
		return err
	}
	entries, err := src.entries()
	if err != nil {
		return err
	}
	text, err := src.render(entries)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, page), text, 0o644)
}

// findRoot is the repository's root: the working folder or the one above it that
// holds package fault.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "fault", "fault.go")); !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("run this in the repository: no folder up from here has fault/fault.go")
		}
		dir = above
	}
}
