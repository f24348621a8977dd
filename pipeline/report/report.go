// Package report is the record of a run: what was requested, what each step did, and
// how it ended. The record is stored as report.json. From it and the logs of the steps
// the package generates a summary in plain text and in Markdown, junit.xml for CI
// systems, and report.html.
package report

import (
	"cmp"
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
	Interrupted Outcome = "interrupted" // it was killed before it could record how it ended
)

// Ended reports whether the run ended by itself.
func (o Outcome) Ended() bool { return o != Running && o != Interrupted }

// HooksStage is the stage of the hooks of a workflow among the steps. Hooks have no
// edges; the time of a hook around a step is part of the step's.
const HooksStage = "hooks"

// Run is the record of a run. It contains no secrets. docs/report.schema.json is
// generated from this type and its comments.
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
	Lock      string            `json:"lock,omitempty"`      // what slipway lock verify ends with on such a machine
	Images    string            `json:"images,omitempty"`    // digest of all tools and images together
	Engine    string            `json:"engine,omitempty"`    // version of the Dagger engine
	Started   time.Time         `json:"started"`             // when the run began
	Finished  time.Time         `json:"finished,omitzero"`   // when it ended; missing while it has not
	Outcome   Outcome           `json:"outcome"`             // how it ended
	Exit      fault.Class       `json:"exit"`                // exit code of the process
	Fault     *fault.Fault      `json:"fault,omitempty"`     // the first one
	Error     string            `json:"error,omitempty"`     // everything that went wrong, one line or more each
	Unchanged bool              `json:"unchanged,omitempty"` // no step had anything to do: each reused what an earlier run has done
	Diagnosis []Diagnosis       `json:"diagnosis,omitempty"` // why it failed, the most likely cause first
	Warnings  []Warning         `json:"warnings,omitempty"`  // what went wrong without failing the run
	Steps     []Step            `json:"steps"`               // in the order of the workflow
	Apps      []App             `json:"apps"`                // as last seen
	Links     []Link            `json:"links,omitempty"`     // addresses of the platform
	Commands  []string          `json:"commands,omitempty"`  // what to do next
	Reproduce []string          `json:"reproduce,omitempty"` // commands that reproduce a failed run elsewhere
	Guidance  string            `json:"guidance,omitempty"`  // what the platform release tells people, plain text
	Approved  *Plan             `json:"approved,omitempty"`  // the plan that the run carried out, if one was approved
	Approval  *Approval         `json:"approval,omitempty"`  // that somebody has agreed to the run; missing if nobody was asked and nobody said so
	Phases    []Phase           `json:"phases,omitempty"`    // parts of runs as users of the platform release know them, in its order; those that this run has nothing of have no status
}

// Plan is what somebody has approved before the run.
type Plan struct {
	Digest string `json:"digest"` // of the plan: "sha256:…"
	Text   string `json:"text"`   // as it was shown
}

// Platform is the platform release of a run.
type Platform struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"` // of the release's files
	Commit  string `json:"commit,omitempty"` // of the Git repository that it was fetched from
	From    string `json:"from,omitempty"`   // directory that the command line named; missing if it named none
}

// Diagnosis is why a run failed.
type Diagnosis struct {
	Summary string   `json:"summary"`           // the cause in one sentence
	Step    string   `json:"step,omitempty"`    // "stage/step" that it was found in
	App     string   `json:"app,omitempty"`     // name of the application concerned
	Details []string `json:"details,omitempty"` // the evidence, a line or more each
}

// Warning is something that went wrong without failing the run, such as an
// optional step that failed.
type Warning struct {
	Summary string `json:"summary"`        // in one sentence
	Step    string `json:"step,omitempty"` // "stage/step" concerned
	Fix     string `json:"fix,omitempty"`  // what to do about it
}

// App is an Application of Argo CD as last seen.
type App struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Wave      int    `json:"wave"`            // apps of lower waves are synced first
	Sync      string `json:"sync"`            // "Synced", "OutOfSync", "Unknown"
	Health    string `json:"health"`          // "Healthy", "Progressing", "Degraded", "Missing", …
	Revision  string `json:"revision"`        // commit that it is synced to
	Cause     string `json:"cause,omitempty"` // why it is not Synced and Healthy
}

// OK reports whether the app is synced and healthy.
func (a *App) OK() bool { return a.Sync == "Synced" && a.Health == "Healthy" }

// Link is an address of the platform.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// NewID returns a new id for a run that starts at now: "20060102-150405-1a2b3c", in
// UTC. Ids sort by time.
func NewID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(b[:])
}

const idTime = "20060102-150405"

var idRE = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{6}$`)

// IDTime returns when the run with this id started, to the second.
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

// Plan adds the steps of a graph to the record before any has started. Their needs, and the
// phases that Divide gives them, are retained when Finish adds how they ended.
func (r *Run) Plan(graph []pipeline.Node) {
	r.Steps = make([]Step, len(graph))
	for i, n := range graph {
		r.Steps[i] = Step{
			Stage: n.Stage, Step: n.Name, Status: pipeline.Pending,
			Needs: names(n.Needs), After: names(n.Settled),
		}
	}
}

// Finish completes the record with the results of Pipeline.Run. Planned steps without a
// result stay pending. A failed step without a diagnosis gets one from its error, and
// a warned one a warning.
func (r *Run) Finish(results []pipeline.Result, err error, now time.Time) {
	defer func() { r.Phases = r.phased() }()
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

// Failure is the code of a run that did not succeed, if it has one, and the step that failed
// first, or that ran when the run was ended.
func (r *Run) Failure() (code, step string) {
	if r.Outcome == Succeeded {
		return "", ""
	}
	var first, running *Step
	for i := range r.Steps {
		switch s := &r.Steps[i]; {
		case s.Status == pipeline.Failed && (first == nil || s.Finished.Before(first.Finished)):
			first = s
		case running == nil && (s.Status == pipeline.Interrupted || s.Status == pipeline.Cancelled) && !s.Started.IsZero():
			running = s
		}
	}
	first = cmp.Or(first, running)
	if r.Fault != nil {
		code = string(r.Fault.Code)
	}
	if first == nil {
		return code, ""
	}
	if first.Fault != nil {
		code = string(first.Fault.Code)
	}
	return code, first.ID()
}

// Interrupt marks a run that has not ended, and its running steps, as interrupted. Other
// records stay as they are.
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

// AddFlags adds to all remedies and suggested commands the flags that they need to work on the run's
// deployment; see WithFlags. It does not modify the faults that the record was made from.
func (r *Run) AddFlags(flags string) {
	fix := func(f *fault.Fault) *fault.Fault {
		if f == nil {
			return nil
		}
		c := *f
		c.Fix = WithFlags(f.Fix, flags)
		return &c
	}
	r.Fault, r.Steps = fix(r.Fault), slices.Clone(r.Steps)
	for i := range r.Steps {
		r.Steps[i].Fault = fix(r.Steps[i].Fault)
	}
	r.Warnings = slices.Clone(r.Warnings)
	for i := range r.Warnings {
		r.Warnings[i].Fix = WithFlags(r.Warnings[i].Fix, flags)
	}
	named := slices.ContainsFunc(r.Commands, func(c string) bool { return strings.Contains(c, flags) })
	if len(r.Commands) > 0 && !named {
		r.Commands = append(slices.Clone(r.Commands), "# slipway commands need the flags of this run, too: "+flags)
	}
}

// WithFlags returns a remedy with the flags that the commands in it need, such as "--name dev"; empty:
// none.
func WithFlags(remedy, flags string) string {
	if strings.Contains(remedy, flags) || !strings.Contains(remedy, "slipway ") && !strings.Contains(remedy, "dagger call ") {
		return remedy
	}
	return remedy + " (with the same flags: " + flags + ")"
}

// diagnose adds a diagnosis for each failed step without one, and a warning for each
// warned step. A hook that failed its step is covered by that step's diagnosis.
func (r *Run) diagnose() {
	for _, s := range r.Steps {
		if s.Status != pipeline.Failed && s.Status != pipeline.Warned {
			continue
		}
		text, fix := s.Error, ""
		if s.Fault != nil {
			text, fix = s.Fault.Err.Error(), s.Fault.Fix // without the operation, which the fault has
		}
		lines := strings.Split(strings.TrimSpace(Clean(text)), "\n")
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

// Elapsed returns how long the run took; zero while it has not ended.
func (r *Run) Elapsed() time.Duration {
	if r.Finished.IsZero() {
		return 0
	}
	return r.Finished.Sub(r.Started)
}

// Encode returns the record as indented JSON. Lists are never null.
func (r *Run) Encode() ([]byte, error) {
	out := *r
	out.Version = Version
	out.Steps = append([]Step{}, r.Steps...)
	out.Apps = append([]App{}, r.Apps...)
	out.Phases = r.phased()
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode run record: %w", err)
	}
	return append(b, '\n'), nil
}

// cleaned returns a copy in which every string is cleaned.
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

// cleanAll cleans all strings of a JSON value and the keys of its objects, in place where possible.
func cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for i := range v {
			v[i] = cleanAll(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k := range v {
			clean[Clean(k)] = cleanAll(v[k])
		}
		return clean
	}
	return v
}
