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

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// CodeOther: a directory has the results of another matrix.
const CodeOther fault.Code = "MTX-001"

// The files of a directory with results; each cell has a directory, which is named after
// its deployment, with the output of its commands and its run's report.
const (
	headFile   = "matrix.lock.json"
	resultFile = "result.json"
	begunFile  = "begun.json"

	reportDir = "report" // of a cell: the report of its install or upgrade
	testsDir  = "tests"  // that of another run which failed
)

// Head says what a matrix runs with. Results of another program, other images, another
// configuration, or of a directory's release that was another, are not those of this one.
type Head struct {
	Slipway       string            `json:"slipway"`            // version of the program
	Source        string            `json:"source"`             // digest of its sources; empty: nobody knows
	Images        string            `json:"images"`             // digest of the bundle's index, or of the lock; empty: the engine has the bundle
	Configuration string            `json:"configuration"`      // sha256
	Releases      map[string]string `json:"releases,omitempty"` // digests of those in directories, by directory
}

// others are what was another when results were made with before.
func (h Head) others(before Head) []string {
	var out []string
	for _, part := range []struct{ name, was, is string }{
		{"Slipway", before.Slipway + " " + before.Source, h.Slipway + " " + h.Source},
		{"bundle or lock", before.Images, h.Images},
		{"configuration", before.Configuration, h.Configuration},
	} {
		if part.was != part.is {
			out = append(out, part.name)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(h.Releases)) {
		if was, ok := before.Releases[dir]; ok && was != h.Releases[dir] {
			out = append(out, "release in "+dir)
		}
	}
	return out
}

// Results are those in a directory.
type Results struct{ dir string }

// Open makes the directory, or goes on with the one that an interrupted run of the same
// matrix has left. The error is a fault MTX-001 if another matrix has left it.
func Open(dir string, head Head) (*Results, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, headFile)
	text, err := bounded.File(file, bounded.Generated)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		var before Head
		others := []string{"Slipway"} // which has written something else
		if json.Unmarshal(text, &before) == nil {
			others = head.others(before)
		}
		if len(others) > 0 {
			f := &fault.Fault{
				Code: CodeOther, Class: fault.Usage, Op: "go on with the results in " + dir,
				Err: fmt.Errorf("they are of another %s", strings.Join(others, ", another ")),
				Fix: "name another directory: --out DIR",
			}
			if module.Active() { // which has a volume for each name
				f.Op, f.Fix = "go on with the results that are there", "give the matrix another name: --name OTHER"
			}
			return nil, f
		}
		all := maps.Clone(before.Releases)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, head.Releases)
		head.Releases = all
	}
	if text, err = json.Marshal(head); err != nil {
		return nil, err
	}
	return &Results{dir}, atomicfile.Write(file, text, 0o644)
}

// begin is the directory of a cell that is run now, which has no result yet: an empty one, or
// if it goes on, the one that it has left.
func (r *Results) begin(deployment string, resumed bool) (string, error) {
	dir := filepath.Join(r.dir, deployment)
	gone := dir
	if resumed {
		gone = filepath.Join(dir, resultFile)
	}
	return dir, errors.Join(os.RemoveAll(gone), os.MkdirAll(dir, 0o755))
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

// begun says how far the upgrade of a cell is that is killed at each step, for a matrix that
// goes on with it.
type begun struct {
	Cell   Cell     `json:"cell"`
	Engine string   `json:"engine"` // on which it is
	Killed []string `json:"killed"` // steps at which it was killed
}

// begun is what was noted of a cell; the zero value if nothing was, or it cannot be read:
// then the cell begins anew.
func (r *Results) begun(deployment string) begun {
	text, err := bounded.File(filepath.Join(r.dir, deployment, begunFile), bounded.Generated)
	var b begun
	if err != nil || json.Unmarshal(text, &b) != nil {
		return begun{}
	}
	return b
}

func (r *Results) note(deployment string, b begun) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(r.dir, deployment, begunFile), text, 0o644)
}

// forget removes what was noted of a cell, which has ended.
func (r *Results) forget(deployment string) error {
	err := os.Remove(filepath.Join(r.dir, deployment, begunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
