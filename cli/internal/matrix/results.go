package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// The codes of a directory with results.
const (
	// CodeOther: it has those of another matrix.
	CodeOther fault.Code = "MTX-001"
	// CodeRunning: another matrix writes to it now.
	CodeRunning fault.Code = "MTX-004"
)

// The files of a directory with results; each cell has a directory, which is named after
// its deployment, with the output of its commands and its run's report.
const (
	lockFile   = ".lock" // locked while a matrix runs
	headFile   = "matrix.lock.json"
	resultFile = "result.json"

	reportDir = "report" // of a cell: the report of its install or upgrade
	testsDir  = "tests"  // that of another run which failed
)

// Head says what a matrix runs with, by parts: "configuration", "release in ./shop". Results that
// were made with another part are not those of this matrix.
type Head map[string]string

// Results are those in a directory.
type Results struct {
	dir  string
	lock *flock.Flock
}

// Open makes the directory, or goes on with the one that an interrupted run of the same
// matrix has left. The error is a fault MTX-001 if another matrix has left it, and MTX-004 if another
// one has it open.
func Open(dir string, head Head) (*Results, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &Results{dir, flock.New(filepath.Join(dir, lockFile))}
	locked, err := r.lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	case !locked:
		return nil, &fault.Fault{
			Code: CodeRunning, Class: fault.Locked, Op: "run the matrix", Err: fmt.Errorf("another matrix writes its results to %s", dir),
			Fix: "wait until that has ended, or give this one another name and other results: --name OTHER --out DIR",
		}
	}
	if err := r.begun(head); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close lets other matrices write to the directory. The end of the process does so, too.
func (r *Results) Close() { _ = r.lock.Close() }

// begun writes down what the matrix runs with, and refuses the results of another one.
func (r *Results) begun(head Head) error {
	file := filepath.Join(r.dir, headFile)
	before := Head{}
	text, err := bounded.File(file, bounded.Generated)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", file, err)
	}
	var others []string
	for _, part := range slices.Sorted(maps.Keys(head)) {
		if was, ok := before[part]; ok && was != head[part] {
			others = append(others, part)
		}
	}
	if len(others) > 0 {
		return &fault.Fault{
			Code: CodeOther, Class: fault.Usage, Op: "go on with the results in " + r.dir,
			Err: fmt.Errorf("they are of another %s", strings.Join(others, ", another ")),
			Fix: "name another directory: --out DIR",
		}
	}
	maps.Copy(before, head) // another shard may have other releases
	if text, err = json.Marshal(before); err != nil {
		return err
	}
	return atomicfile.Write(file, text, 0o644)
}

// begin is the directory of a cell that is run now, which is empty.
func (r *Results) begin(deployment string) (string, error) {
	dir := filepath.Join(r.dir, deployment)
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}

// Missing are the cells that earlier runs of a matrix have not brought to an end, and kept the
// results of the others. Where none is missing, the matrix had come to its end and this is
// another one: all are missing, and what they have left is removed.
func (r *Results) Missing(matrix string, cells []Cell) (missing []Cell, kept map[Cell]Result, err error) {
	kept = map[Cell]Result{}
	for _, c := range cells {
		if result, ok := r.kept(c.Deployment(matrix), c); ok {
			kept[c] = result
		} else {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return missing, kept, nil
	}
	for _, c := range cells {
		if err := os.RemoveAll(filepath.Join(r.dir, c.Deployment(matrix))); err != nil {
			return nil, nil, err
		}
	}
	return cells, map[Cell]Result{}, nil
}

// kept is the result of a cell that an earlier run has brought to an end.
func (r *Results) kept(deployment string, c Cell) (Result, bool) {
	text, err := bounded.File(filepath.Join(r.dir, deployment, resultFile), bounded.Generated)
	var out Result
	if err != nil || json.Unmarshal(text, &out) != nil { // it is run again
		return Result{}, false
	}
	return out, out.Cell == c && (out.Outcome == Upgraded || out.Outcome == Failed)
}

// Keep writes the result of a cell.
func (r *Results) Keep(result Result) error {
	dir := filepath.Join(r.dir, result.Deployment)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, resultFile), append(text, '\n'), 0o644)
}

// Summarise writes the table of all results as matrix.json, junit.xml and matrix.html.
func (r *Results) Summarise(all []Result) error {
	for name, write := range map[string]func([]Result) ([]byte, error){"matrix.json": JSON, "junit.xml": JUnit, "matrix.html": r.Page} {
		text, err := write(all)
		if err == nil {
			err = atomicfile.Write(filepath.Join(r.dir, name), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
