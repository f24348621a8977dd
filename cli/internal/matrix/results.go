package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// Outcome is how a cell ended.
type Outcome string

// The outcomes.
const (
	Upgraded  Outcome = "upgraded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Phase is a command of a cell.
type Phase struct {
	Name    string        `json:"name"` // "install"
	Took    time.Duration `json:"nanoseconds"`
	Exit    int           `json:"exit"`
	Killed  int           `json:"killed,omitempty"` // how often it was killed before it went through
	Command string        `json:"command"`          // as a person types it
}

// Result is what came of a cell.
type Result struct {
	Cell       Cell      `json:"cell"`
	Deployment string    `json:"deployment"`
	Outcome    Outcome   `json:"outcome"`
	Began      time.Time `json:"began"`
	Phases     []Phase   `json:"phases"`
	Code       string    `json:"code,omitempty"`   // of the fault, for Failed
	Reason     string    `json:"reason,omitempty"` // last words of the command that failed
	Again      string    `json:"again,omitempty"`  // command that runs this cell alone, for Failed
	// Counts are what the checks of the workloads have counted, by name, all together.
	Counts    map[string]int64 `json:"counts,omitempty"`
	Package   string           `json:"package,omitempty"`   // file with the run that failed
	Reproduce string           `json:"reproduce,omitempty"` // command that replays it, where that is an install or upgrade
}

// Took is how long all commands of the cell took.
func (r Result) Took() time.Duration {
	var sum time.Duration
	for _, p := range r.Phases {
		sum += p.Took
	}
	return sum
}

// The directories of a cell, below the directory that is named after its deployment.
const (
	reportDir = "report" // the report of its install or upgrade
	testsDir  = "tests"  // that of another run which failed
)

// Results is the directory with the results of a matrix. Each cell has a directory in it, with its
// result, the output of its commands and its run's report.
type Results string

// CodeRunning is that of a matrix whose directory another one writes to.
const CodeRunning fault.Code = "MTX-004"

// Lock makes sure that no other matrix writes to the directory until release is called.
func (r Results) Lock() (release func(), err error) {
	if err := os.MkdirAll(string(r), 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(string(r), ".lock"))
	locked, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", r, err)
	case !locked:
		return nil, &fault.Fault{
			Code: CodeRunning, Class: fault.Locked, Op: "run the matrix", Err: fmt.Errorf("another matrix writes its results to %s", r),
			Fix: "wait until it has ended, or name another directory: --out DIR",
		}
	}
	return func() { _ = lock.Close() }, nil
}

func (r Results) file(deployment string) string {
	return filepath.Join(string(r), deployment, "result.json")
}

// begin is the directory of a cell that is run now, which is empty.
func (r Results) begin(deployment string) (string, error) {
	dir := filepath.Join(string(r), deployment)
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}

// earlier is the result of an earlier run of the cell, if that has upgraded it.
func (r Results) earlier(deployment string) (out Result, ok bool) {
	text, err := bounded.File(r.file(deployment), bounded.Generated)
	return out, err == nil && json.Unmarshal(text, &out) == nil && out.Outcome == Upgraded
}

// keep writes the result of a cell.
func (r Results) keep(result Result) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(r.file(result.Deployment), append(text, '\n'), 0o644)
}

// Summarise writes the table of all results as matrix.json, junit.xml and matrix.html.
func (r Results) Summarise(all []Result) error {
	for name, write := range map[string]func([]Result) ([]byte, error){"matrix.json": JSON, "junit.xml": JUnit, "matrix.html": r.Page} {
		text, err := write(all)
		if err == nil {
			err = errors.Join(os.MkdirAll(string(r), 0o755), atomicfile.Write(filepath.Join(string(r), name), text, 0o644))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
