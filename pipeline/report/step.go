package report

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// Step is what a step did.
type Step struct {
	Stage     string          `json:"stage"`               // "infrastructure"
	Step      string          `json:"step"`                // name of the step within its stage
	Status    pipeline.Status `json:"status"`              // current or final status
	Needs     []string        `json:"needs,omitempty"`     // "stage/step" of the steps that must succeed before it starts
	After     []string        `json:"after,omitempty"`     // "stage/step" of the steps that must end before it starts
	Started   time.Time       `json:"started,omitzero"`    // missing when it was never started
	Finished  time.Time       `json:"finished,omitzero"`   // when its status became final
	Seconds   float64         `json:"seconds"`             // how long it ran; 0 when it was never started
	Fault     *fault.Fault    `json:"fault,omitempty"`     // what went wrong and what to do
	Error     string          `json:"error,omitempty"`     // why it failed, or was blocked or cancelled
	BlockedBy []string        `json:"blockedBy,omitempty"` // "stage/step" of the failed steps that prevented it from starting
	Log       string          `json:"log,omitempty"`       // file, relative to the run's directory
	// Counts are what the step has counted, by name, such as what the check of a workload
	// has found.
	Counts map[string]int64 `json:"counts,omitempty"`
	Phase  string           `json:"phase,omitempty"` // name of the phase that it is a part of, if any
	Note   string           `json:"-"`               // what the summary says behind its status; not recorded
}

// ID returns "stage/step".
func (s *Step) ID() string { return s.Stage + "/" + s.Step }

// Counted returns what the step has counted, by name, in one line: "requests 812, rows 40";
// nothing if it has counted nothing.
func (s *Step) Counted() string { return Counted(s.Counts) }

// Counted writes counts in one line, by name.
func Counted(counts map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, name+" "+strconv.FormatInt(counts[name], 10))
	}
	return strings.Join(parts, ", ")
}

func (s *Step) elapsed() time.Duration { return time.Duration(s.Seconds * float64(time.Second)) }

func names(keys []pipeline.Key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.String())
	}
	return out
}

// steps converts the results of a pipeline, in the same order.
func steps(results []pipeline.Result) []Step {
	out := make([]Step, 0, len(results))
	for _, r := range results {
		s := Step{
			Stage: r.Stage, Step: r.Name, Status: r.Status, Log: r.Detail.Log, Counts: r.Detail.Counts,
			Started: r.Started, Finished: r.Finished, Seconds: r.Elapsed().Round(time.Millisecond).Seconds(),
		}
		if r.Err != nil {
			s.Error = r.Err.Error()
		}
		if f, ok := errors.AsType[*fault.Fault](r.Err); ok {
			s.Fault = f
			if s.Log == "" {
				s.Log = f.Log
			}
		}
		if b, ok := errors.AsType[*pipeline.BlockedError](r.Err); ok {
			s.BlockedBy = names(b.By)
		}
		out = append(out, s)
	}
	return out
}

// merge completes planned steps with their results; unplanned steps follow.
func merge(planned, did []Step) []Step {
	out := slices.Clone(planned)
	at := map[string]int{}
	for i := range out {
		at[out[i].ID()] = i
	}
	for _, s := range did {
		i, ok := at[s.ID()]
		if !ok {
			out = append(out, s)
			continue
		}
		s.Needs, s.After, s.Phase = out[i].Needs, out[i].After, out[i].Phase
		out[i] = s
	}
	return out
}
