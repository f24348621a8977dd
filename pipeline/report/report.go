// Package report is the record of a run: what was asked for, what each step did,
// how it ended. It is kept as report.json; from that and the logs of the steps
// come a summary in plain text and in Markdown, junit.xml for CI systems, and
// report.html, a page for people.
package report

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// Version is the version of the record that this program writes and reads.
const Version = 1

// Outcome is how a run ended.
type Outcome string

// The outcomes of a run.
const (
	Running     Outcome = "running"
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	Cancelled   Outcome = "cancelled"
	Interrupted Outcome = "interrupted" // it is gone, and did not say how it ended
)

// Ended tells whether the run came to its end.
func (o Outcome) Ended() bool { return o != Running && o != Interrupted }

// HooksStage is the stage under which the hooks of a workflow are among the
// steps. They have no edges: one around a step is a part of the step's time.
const HooksStage = "hooks"

// Run is the record of a run. It holds no secret. docs/report.schema.json is
// made from this type and its comments.
type Run struct {
	Version    int      `json:"version"`            // of the record
	ID         string   `json:"id"`                 // ids sort by time
	Workflow   string   `json:"workflow"`           // "install", "destroy", …
	Deployment string   `json:"deployment"`         // name of the deployment
	Provider   string   `json:"provider,omitempty"` // where it is installed
	Platform   Platform `json:"platform"`           // what is installed
	Config     string   `json:"config,omitempty"`   // digest of the configuration
	Slipway    string   `json:"slipway,omitempty"`  // version of the program
	// Tools are the digests of what the steps ran with: of each tool of a bundle, or of
	// the toolchain's image from a registry.
	Tools     map[string]string `json:"tools,omitempty"`
	Started   time.Time         `json:"started"`             // when the run began
	Finished  time.Time         `json:"finished,omitzero"`   // when it ended; missing while it has not
	Outcome   Outcome           `json:"outcome"`             // how it ended
	Exit      fault.Class       `json:"exit"`                // exit code of the process
	Fault     *fault.Fault      `json:"fault,omitempty"`     // the first one
	Error     string            `json:"error,omitempty"`     // everything that went wrong, one line or more each
	Diagnosis []Diagnosis       `json:"diagnosis,omitempty"` // why it failed, the most telling first
	Warnings  []Warning         `json:"warnings,omitempty"`  // what went wrong without failing the run
	Steps     []Step            `json:"steps"`               // in the order in which a person would tell them
	Apps      []App             `json:"apps"`                // as they were last seen
	Links     []Link            `json:"links,omitempty"`     // addresses of the platform
	Commands  []string          `json:"commands,omitempty"`  // what to do next
}

// Platform is the platform release of a run.
type Platform struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"` // of the release's files
}

// Diagnosis is why a run failed.
type Diagnosis struct {
	Summary string   `json:"summary"`           // the cause in one sentence
	Step    string   `json:"step,omitempty"`    // "stage/step" that it was found in
	App     string   `json:"app,omitempty"`     // name of the application that it is about
	Details []string `json:"details,omitempty"` // what it was concluded from, a line or more each
}

// Warning is something that went wrong without failing the run, such as an
// optional step that failed.
type Warning struct {
	Summary string `json:"summary"`        // in one sentence
	Step    string `json:"step,omitempty"` // "stage/step" that it is about
	Fix     string `json:"fix,omitempty"`  // what to do about it
}

// Step is what a step did.
type Step struct {
	Stage     string          `json:"stage"`               // "infrastructure"
	Step      string          `json:"step"`                // name of the step within its stage
	Status    pipeline.Status `json:"status"`              // how it stands
	Needs     []string        `json:"needs,omitempty"`     // "stage/step" of the steps that must succeed before it starts
	After     []string        `json:"after,omitempty"`     // "stage/step" of the steps that must end before it starts
	Attempt   int             `json:"attempt,omitempty"`   // which attempt gave the result, counted from 1
	Started   time.Time       `json:"started,omitzero"`    // missing when it was never started
	Finished  time.Time       `json:"finished,omitzero"`   // when its status became final
	Seconds   float64         `json:"seconds"`             // how long it ran; 0 when it was never started
	Fault     *fault.Fault    `json:"fault,omitempty"`     // what went wrong and what to do
	Error     string          `json:"error,omitempty"`     // why it is failed, blocked or cancelled
	BlockedBy []string        `json:"blockedBy,omitempty"` // "stage/step" of the failed steps that kept it from starting
	Log       string          `json:"log,omitempty"`       // file, relative to the run's directory
}

// ID is "stage/step".
func (s *Step) ID() string { return s.Stage + "/" + s.Step }

// App is an Application of Argo CD as it was last seen.
type App struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Wave      int    `json:"wave"`            // apps of a lower wave come first
	Sync      string `json:"sync"`            // "Synced", "OutOfSync", "Unknown"
	Health    string `json:"health"`          // "Healthy", "Progressing", "Degraded", "Missing", …
	Revision  string `json:"revision"`        // commit that it is synced to
	Cause     string `json:"cause,omitempty"` // why it is not Synced and Healthy
}

// OK tells whether the app is as it should be.
func (a *App) OK() bool { return a.Sync == "Synced" && a.Health == "Healthy" }

// Link is an address of the platform.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// NewID makes the id of a run that starts at now: "20060102-150405-1a2b3c", in
// UTC. Ids sort by time.
func NewID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(b[:])
}

const idTime = "20060102-150405"

var idRE = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{6}$`)

// IDTime is when the run with this id started, to the second.
func IDTime(id string) (time.Time, error) {
	if !idRE.MatchString(id) {
		return time.Time{}, fmt.Errorf("run id %q: want the form 20060102-150405-1a2b3c", id)
	}
	t, err := time.Parse(idTime, id[:len(idTime)])
	if err != nil {
		return time.Time{}, fmt.Errorf("run id %q: %w", id, err)
	}
	return t, nil
}

// Plan puts the steps of a graph into the record, before any has started. What
// each needs stays there when Finish adds how it ended.
func (r *Run) Plan(graph []pipeline.Node) {
	r.Steps = make([]Step, len(graph))
	for i, n := range graph {
		r.Steps[i] = Step{
			Stage: n.Stage, Step: n.Name, Status: pipeline.Pending,
			Needs: names(n.Needs), After: names(n.Settled),
		}
	}
}

func names(keys []pipeline.Key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.String())
	}
	return out
}

// steps turns the results of a pipeline into records, in the same order.
func steps(results []pipeline.Result) []Step {
	out := make([]Step, 0, len(results))
	for _, r := range results {
		s := Step{
			Stage: r.Stage, Step: r.Name, Status: r.Status, Attempt: r.Detail.Attempt, Log: r.Detail.Log,
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

// Finish completes the record with what Pipeline.Run returned. Planned steps
// that have no result stay pending. A failed step that the record has no
// diagnosis of gets one from its error, and a warned one a warning.
func (r *Run) Finish(results []pipeline.Result, err error, now time.Time) {
	r.Steps = merge(r.Steps, steps(results))
	r.diagnose()
	r.Finished = now.UTC()
	r.Outcome, r.Exit, r.Fault, r.Error = Succeeded, fault.ClassOf(err), nil, ""
	if err == nil {
		return
	}
	r.Outcome, r.Error = Failed, err.Error()
	if r.Exit == fault.Cancelled {
		r.Outcome = Cancelled
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		r.Fault = f
	}
}

// Interrupt says of a record without an end that its run is gone. Of the others
// it says nothing.
func (r *Run) Interrupt() {
	if r.Outcome != Running {
		return
	}
	r.Outcome = Interrupted
	for i := range r.Steps {
		if r.Steps[i].Status == pipeline.Running {
			r.Steps[i].Status = pipeline.Interrupted
		}
	}
}

// Address replaces each command for people, and each remedy, by what hint makes of
// it. The faults that the record was made from stay as they are.
func (r *Run) Address(hint func(string) string) {
	fix := func(f *fault.Fault) *fault.Fault {
		if f == nil {
			return nil
		}
		own := *f
		own.Fix = hint(f.Fix)
		return &own
	}
	r.Fault, r.Steps = fix(r.Fault), slices.Clone(r.Steps)
	for i := range r.Steps {
		r.Steps[i].Fault = fix(r.Steps[i].Fault)
	}
	r.Warnings, r.Commands = slices.Clone(r.Warnings), slices.Clone(r.Commands)
	for i := range r.Warnings {
		r.Warnings[i].Fix = hint(r.Warnings[i].Fix)
	}
	for i := range r.Commands {
		r.Commands[i] = hint(r.Commands[i])
	}
}

// merge completes planned steps by what they did; steps that nobody planned
// follow.
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
		s.Needs, s.After = out[i].Needs, out[i].After
		out[i] = s
	}
	return out
}

// diagnose adds a diagnosis for each failed step that has none, and a warning for
// each warned one. A hook that failed its step has been told of with that.
func (r *Run) diagnose() {
	for _, s := range r.Steps {
		if s.Status != pipeline.Failed && s.Status != pipeline.Warned {
			continue
		}
		text, fix := s.Error, ""
		if s.Fault != nil {
			text, fix = s.Fault.Err.Error(), s.Fault.Fix // what was attempted is in the fault
		}
		lines := strings.Split(strings.TrimSpace(clean(text)), "\n")
		if s.Status == pipeline.Warned {
			if !slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Step == s.ID() }) {
				r.Warnings = append(r.Warnings, Warning{Summary: lines[0], Step: s.ID(), Fix: fix})
			}
			continue
		}
		if !slices.ContainsFunc(r.Diagnosis, func(d Diagnosis) bool {
			return d.Step == s.ID() || s.Stage == HooksStage && d.Summary == lines[0]
		}) {
			r.Diagnosis = append(r.Diagnosis, Diagnosis{Summary: lines[0], Step: s.ID(), Details: lines[1:]})
		}
	}
}

// Elapsed is how long the run took; zero while it has not ended.
func (r *Run) Elapsed() time.Duration {
	if r.Finished.IsZero() {
		return 0
	}
	return r.Finished.Sub(r.Started)
}

// Encode is the record as JSON for people and programs. Lists are never null.
func (r *Run) Encode() ([]byte, error) {
	out := *r
	out.Version = Version
	out.Steps = append([]Step{}, r.Steps...)
	out.Apps = append([]App{}, r.Apps...)
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode run record: %w", err)
	}
	return append(b, '\n'), nil
}

// cleaned is a copy of which every text is clean.
func (r *Run) cleaned() (*Run, error) {
	b, err := r.Encode()
	if err != nil {
		return nil, err
	}
	var all any
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("decode run record: %w", err)
	}
	if b, err = json.Marshal(cleanAll(all)); err != nil {
		return nil, fmt.Errorf("encode run record: %w", err)
	}
	return Decode(b)
}

// cleanAll cleans the texts of a JSON value, in place where it can.
func cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return clean(v)
	case []any:
		for i := range v {
			v[i] = cleanAll(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = cleanAll(v[k])
		}
	}
	return v
}

// Decode reads a record. One of a newer version is refused.
func Decode(b []byte) (*Run, error) {
	var r Run
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("decode run record: %w", err)
	}
	if r.Version < 1 || r.Version > Version {
		return nil, fmt.Errorf("decode run record: it has version %d, this program knows %d", r.Version, Version)
	}
	return &r, nil
}
