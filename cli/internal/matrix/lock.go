package matrix

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config/folder"
	"github.com/slipway-sh/slipway/fault"
)

// CodeRunning: another matrix has the same results or cells.
const CodeRunning fault.Code = "MTX-004"

// lockFileName is that of the lock in a directory of results.
const lockFileName = ".lock"

// Alone keeps other matrices from a directory of results, and those of this user on this
// machine from the cells of a matrix of that name, until release is called or the process ends.
// The error is a fault MTX-004 if one of them is there. Parts of a matrix, which have no cell in
// common, run beside each other. In the Dagger module, whose volume of results has the matrix's
// name, the lock of that is all.
func Alone(dir, matrix string, cells []Cell) (release func(), err error) {
	var files []string
	fix := "wait until that has ended, or give this one another name: --name OTHER"
	if !module.Active() {
		fix = "wait until that has ended, or give this one another name and other results: --name OTHER --out DIR"
		own, err := folder.Cache()
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			files = append(files, filepath.Join(own, "upgrade-matrix", c.Deployment(matrix)+".lock"))
		}
	}
	files = append(files, filepath.Join(dir, lockFileName)) // last: where a cell is taken, no directory is made
	var held []*flock.Flock
	release = func() {
		for _, l := range held {
			_ = l.Close() // the process ends soon, and the lock with it
		}
	}
	for i, file := range files {
		lock, got := flock.New(file), false
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			got, err = lock.TryLock()
		}
		if got {
			held = append(held, lock)
			continue
		}
		release()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", file, err)
		}
		what := "writes its results to " + dir
		if i < len(files)-1 {
			what = fmt.Sprintf("of the name %s runs %s", matrix, cells[i])
		}
		return nil, &fault.Fault{
			Code: CodeRunning, Class: fault.Locked, Op: "run the matrix", Err: errors.New("another one " + what), Fix: fix,
		}
	}
	return release, nil
}
