// Package report is the record of a run: what was asked for, what each step did,
// how it ended. It is written as run.json and shown as tables.
package report

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
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
	Running   Outcome = "running" // or killed before it could say how it ended
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Run is the record of a run. It holds no secret.
type Run struct {
	Version    int          `json:"version"`
	ID         string       `json:"id"`
	Workflow   string       `json:"workflow"` // "install", "destroy", …
	Deployment string       `json:"deployment"`
	Provider   string       `json:"provider,omitempty"`
	Platform   Platform     `json:"platform"`
	Config     string       `json:"config,omitempty"`  // digest of the configuration
	Slipway    string       `json:"slipway,omitempty"` // version of the program
	Started    time.Time    `json:"started"`
	Finished   time.Time    `json:"finished,omitzero"`
	Outcome    Outcome      `json:"outcome"`
	Exit       fault.Class  `json:"exit"` // exit code of the process
	Fault      *fault.Fault `json:"fault,omitempty"`
	Error      string       `json:"error,omitempty"` // everything that went wrong, one line or more each
	Steps      []Step       `json:"steps"`
	Apps       []App        `json:"apps"`
	Links      []Link       `json:"links,omitempty"`
	Commands   []string     `json:"commands,omitempty"` // what to do next
}

// Platform is the platform release of a run.
type Platform struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"`
}

// Step is what a step did.
type Step struct {
	Stage     string          `json:"stage"`
	Step      string          `json:"step"`
	Status    pipeline.Status `json:"status"`
	Attempt   int             `json:"attempt,omitempty"`
	Started   time.Time       `json:"started,omitzero"`
	Finished  time.Time       `json:"finished,omitzero"`
	Seconds   float64         `json:"seconds"` // how long it ran; 0 when it was never started
	Fault     *fault.Fault    `json:"fault,omitempty"`
	Error     string          `json:"error,omitempty"`
	BlockedBy []string        `json:"blockedBy,omitempty"` // "stage/step" of the failed steps
	Log       string          `json:"log,omitempty"`       // relative to the run's directory
}

// App is an Application of Argo CD as it was last seen.
type App struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Wave      int    `json:"wave"`
	Sync      string `json:"sync"`
	Health    string `json:"health"`
	Revision  string `json:"revision"`
	Cause     string `json:"cause,omitempty"` // why it is not Synced and Healthy
}

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

// Steps turns the results of a pipeline into records, in the same order.
func Steps(results []pipeline.Result) []Step {
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
			for _, k := range b.By {
				s.BlockedBy = append(s.BlockedBy, k.String())
			}
		}
		out = append(out, s)
	}
	return out
}

// Finish completes the record with what Pipeline.Run returned.
func (r *Run) Finish(results []pipeline.Result, err error, now time.Time) {
	r.Steps = Steps(results)
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
