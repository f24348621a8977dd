package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/bounded"
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
	// Counts are what the checks of the workloads have counted, by name, all together.
	Counts    map[string]int64 `json:"counts,omitempty"`
	Package   string           `json:"package,omitempty"`   // file with the run that failed
	Reproduce string           `json:"reproduce,omitempty"` // command that replays it; only for an install or upgrade
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
	testsDir  = "tests"  // the report of another run that failed
)

// Results is the directory with a folder per cell: its result, the output of its commands, its report.
type Results string

func (r Results) file(deployment string) string {
	return filepath.Join(string(r), deployment, "result.json")
}

// begin makes an empty directory for a cell.
func (r Results) begin(deployment string) (string, error) {
	dir := filepath.Join(string(r), deployment)
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}

// earlier is the result of a cell that has passed before.
func (r Results) earlier(deployment string) (out Result, ok bool) {
	text, err := bounded.File(r.file(deployment), bounded.Generated)
	return out, err == nil && json.Unmarshal(text, &out) == nil && out.Outcome == Upgraded
}

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
