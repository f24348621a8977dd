package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// The files of a run's directory that this package writes, and those of the steps.
const (
	RecordFile   = "report.json"
	SummaryFile  = "summary.txt"
	MarkdownFile = "summary.md"
	JUnitFile    = "junit.xml"
	PageFile     = "report.html"
	stepsDir     = "steps"        // a directory for each step, "<stage>.<step>"
	requestFile  = "request.json" // in it, once it was opened
	logFile      = "log.txt"      // in it
	resultFile   = "result.json"  // in it, once the step has ended
	appsFile     = "apps.json"    // in it, when the step saw the apps and failed
)

// Holds reports whether name is the name of an entry in the directory of a run or of a
// report.
func Holds(name string) bool {
	return slices.Contains([]string{
		RecordFile, SummaryFile, MarkdownFile, JUnitFile, PageFile, "config.yaml", "state.yaml", stepsDir, HooksStage,
	}, name)
}

// Load reads the record of the run with that id from its directory. If the run is still
// in progress or was killed, the record is incomplete or missing, and is completed
// from the files of the steps. alive reports whether the run is in progress; a run that
// is neither alive nor finished was interrupted.
func Load(dir, id string, alive bool) (r *Run, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the run's directory: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return load(root, id, alive)
}

// Render completes the directory of the run with that id: it reads the record, as Load
// does, and writes all files that are generated from it and from the steps' logs.
func Render(dir, id string, alive bool) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the run's directory: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r, err := load(root, id, alive)
	if err != nil {
		return err
	}
	if r, err = r.cleaned(); err != nil {
		return err
	}
	views := []struct {
		name  string
		write func(*bytes.Buffer) error
	}{
		{RecordFile, func(b *bytes.Buffer) error {
			text, err := r.Encode()
			b.Write(text)
			return err
		}},
		{SummaryFile, func(b *bytes.Buffer) error { return r.Summary(b) }},
		{MarkdownFile, func(b *bytes.Buffer) error { return r.Markdown(b) }},
		{JUnitFile, func(b *bytes.Buffer) error { return r.JUnit(b) }},
		{PageFile, func(b *bytes.Buffer) error { return r.page(b, root) }}, // last, because it links to the others
	}
	for _, v := range views {
		var b bytes.Buffer
		if err := v.write(&b); err != nil {
			return err
		}
		if err := root.WriteFile(v.name, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the run's %s: %w", v.name, err)
		}
	}
	return nil
}

// load reads the record and completes it from the files of the steps.
func load(root *os.Root, id string, alive bool) (*Run, error) {
	r := &Run{ID: id, Outcome: Running}
	b, err := bounded.FS(root.FS(), RecordFile, bounded.Generated)
	switch {
	case errors.Is(err, fs.ErrNotExist): // killed before it was written
		if r.Started, err = IDTime(id); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("read the run's record: %w", err)
	default:
		if r, err = Decode(b); err != nil {
			return nil, &FileError{RecordFile, err}
		}
		if r.ID != id {
			return nil, &FileError{RecordFile, fmt.Errorf("it is the record of run %q, not of run %s", r.ID, id)}
		}
	}
	entries, err := fs.ReadDir(root.FS(), stepsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the run's steps: %w", err)
	}
	planned := len(r.Steps) > 0
	for _, e := range entries {
		stage, name, ok := strings.Cut(e.Name(), ".")
		if !ok || !e.IsDir() {
			continue
		}
		if err := r.add(root, stage, name, planned); err != nil {
			return nil, err
		}
	}
	r.completeNeeded()
	if !alive {
		r.Interrupt()
	}
	r.diagnose()
	r.Phases = r.phased()
	return r, nil
}

// completeNeeded marks pending steps without a directory of their own, such as the
// start of the cluster's node, as succeeded if a step that needs them has started.
func (r *Run) completeNeeded() {
	if r.Outcome != Running {
		return
	}
	needed := map[string]bool{}
	for i := len(r.Steps) - 1; i >= 0; i-- { // a step comes after those it needs
		s := &r.Steps[i]
		if s.Status == pipeline.Pending && needed[s.ID()] {
			s.Status = pipeline.Succeeded
		}
		if s.Status != pipeline.Pending {
			for _, id := range s.Needs {
				needed[id] = true
			}
		}
	}
}

// add completes the record from the directory of one step. A step that is not in the
// plan is not part of the run, but a later query of its cluster.
func (r *Run) add(root *os.Root, stage, name string, planned bool) error {
	dir := path.Join(stepsDir, stage+"."+name)
	var seen struct {
		Apps []App `json:"apps"`
	}
	if len(r.Apps) == 0 {
		if err := decode(root, path.Join(dir, appsFile), &seen); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.Apps = seen.Apps
	}
	if r.Outcome != Running {
		return nil
	}
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Stage == stage && s.Step == name })
	if i < 0 && planned {
		return nil
	}
	if i < 0 {
		r.Steps = append(r.Steps, Step{Stage: stage, Step: name, Status: pipeline.Pending})
		i = len(r.Steps) - 1
	}
	s := &r.Steps[i]
	s.Log = path.Join(dir, logFile)
	var result struct {
		Status            pipeline.Status
		Fault             *fault.Fault
		Started, Finished time.Time
	}
	var request struct {
		VerifyOnly bool `json:"verifyOnly"`
	}
	if err := decode(root, path.Join(dir, requestFile), &request); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := decode(root, path.Join(dir, resultFile), &result)
	switch {
	case request.VerifyOnly && (err == nil && result.Status == pipeline.Failed || errors.Is(err, fs.ErrNotExist)):
		return nil // the step only verified an earlier result, which does not hold
	case errors.Is(err, fs.ErrNotExist):
		s.Status = pipeline.Running
		return nil
	case err != nil:
		return err
	}
	s.Status, s.Fault, s.Started, s.Finished = result.Status, result.Fault, result.Started, result.Finished
	s.Seconds = s.Finished.Sub(s.Started).Round(time.Millisecond).Seconds()
	if s.Fault != nil {
		s.Error = s.Fault.Error()
	}
	return nil
}

func decode(root *os.Root, name string, v any) error {
	b, err := bounded.FS(root.FS(), name, bounded.Generated)
	if err != nil {
		return fmt.Errorf("read the run's %s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &FileError{name, err}
	}
	return nil
}

// FileError reports a file of a run that is not what is written there.
type FileError struct {
	Name string // in the run's directory
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("decode the run's %s: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }
