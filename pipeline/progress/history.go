package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// historyVersion is the version of the files that this program writes and reads.
const historyVersion = 1

// History records how long the steps of a deployment took when they succeeded. It is
// stored in a file that may be deleted at any time. It is safe for concurrent use.
type History struct {
	file string

	mu     sync.Mutex
	steps  map[pipeline.Key]took
	reuses bool // a step of this run was reused
}

// took is how long a step takes in seconds; 0 is unknown.
type took struct {
	Stage string  `json:"stage"`
	Name  string  `json:"step"`
	Fresh float64 `json:"fresh,omitempty"` // in a run that does all the work
	Again float64 `json:"again,omitempty"` // in a run that reuses earlier results
}

type historyFile struct {
	Version int    `json:"version"`
	Steps   []took `json:"steps"`
}

// ReadHistory reads the file; if it does not exist the history is empty. On an error
// the returned history is empty but usable: Write replaces the file.
func ReadHistory(file string) (*History, error) {
	h := &History{file: file, steps: map[pipeline.Key]took{}}
	data, err := bounded.File(file, bounded.Generated)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	var stored historyFile
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err == nil && stored.Version != historyVersion {
		err = fmt.Errorf("it has version %d, this program knows %d", stored.Version, historyVersion)
	}
	if err != nil {
		return h, fmt.Errorf("read the durations of earlier runs from %s: %w", file, err)
	}
	for _, t := range stored.Steps {
		h.steps[pipeline.Key{Stage: t.Stage, Name: t.Name}] = t
	}
	return h, nil
}

// Observe records how long a successful step took, averaged with the duration known
// before. It reports whether Durations now returns the other set of durations, which
// happens once, when the first step of the run is reused.
func (h *History) Observe(e pipeline.Event) bool {
	if !e.Status.OK() || e.Result.Started.IsZero() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.steps[e.Result.Key]
	t.Stage, t.Name = e.Result.Stage, e.Result.Name
	first := e.Status == pipeline.Reused && !h.reuses
	h.reuses = h.reuses || first
	last := &t.Fresh
	if h.reuses { // even a step that always runs then has less to do
		last = &t.Again
	}
	seconds := e.Result.Elapsed().Round(time.Millisecond).Seconds()
	if *last > 0 {
		seconds = (seconds + *last) / 2
	}
	*last = max(seconds, 0.001)
	h.steps[e.Result.Key] = t
	return first
}

// Durations returns how long each known step should take: by the runs that did all the
// work until a step of this run is reused, then by the runs that reused steps.
func (h *History) Durations() map[pipeline.Key]time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[pipeline.Key]time.Duration, len(h.steps))
	for key, t := range h.steps {
		seconds := t.Fresh
		if t.Again > 0 && (h.reuses || seconds == 0) {
			seconds = t.Again
		}
		out[key] = time.Duration(seconds * float64(time.Second))
	}
	return out
}

// Write replaces the file, and makes its directory if needed.
func (h *History) Write() error {
	h.mu.Lock()
	stored := historyFile{Version: historyVersion, Steps: make([]took, 0, len(h.steps))}
	for t := range maps.Values(h.steps) {
		stored.Steps = append(stored.Steps, t)
	}
	h.mu.Unlock()
	data, err := json.Marshal(stored)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(h.file), 0o755)
	}
	if err == nil {
		err = atomicfile.Write(h.file, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the durations of this run in %s: %w", h.file, err)
	}
	return nil
}
