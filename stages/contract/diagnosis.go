package contract

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// DiagnosisInput is what diagnosis/collect looks for the cause of.
type DiagnosisInput struct {
	Failed []FailedStep `json:"failed"` // in the order of the run's graph
	// Refused says that they refused the run before anything was changed: what the cluster
	// says of the last install stays.
	Refused bool `json:"refused,omitempty"`
	// Namespaces are those that may hold the cause, beside those of Kubernetes
	// and of the apps; the more likely first. Empty: all.
	Namespaces []string `json:"namespaces"`
	// Argo is the namespace of Argo CD; empty: the platform has none.
	Argo string `json:"argo,omitempty"`
	// Health is the URL at which the cluster's node says how it is, for when the
	// API does not respond; empty: there is none.
	Health string `json:"health,omitempty"`
}

// FailedStep is a step of a run that failed.
type FailedStep struct {
	Stage string     `json:"stage"`
	Step  string     `json:"step"`
	Code  fault.Code `json:"code,omitempty"`
	Error string     `json:"error"`
}

// String is "orchestrator/sync".
func (s FailedStep) String() string { return s.Stage + "/" + s.Step }

// Diagnosis is what the cluster says about a failure. Its lists have limits:
// whatever the cluster's size, it is some ten thousand characters.
type Diagnosis struct {
	// Cause is one sentence: "app web: image docker.io/x:1 not found (REG-007), pod web-0,
	// since 14:02 UTC".
	Cause string `json:"cause"`
	// Known says that Cause is about something that went wrong. Otherwise it is
	// about what may only be slow, or says that nothing was found.
	Known    bool      `json:"known"`
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"` // all that is not well, the cause first
	Apps     []App     `json:"apps"`     // that are not Synced and Healthy, with their causes
	Events   []Event   `json:"events"`   // warnings in the namespaces that were looked at, newest first
	// Gaps are what could not be looked at, with the reason: "events: forbidden".
	Gaps []string `json:"gaps"`
}

// Finding is one thing that is not well in the cluster.
type Finding struct {
	Kind     string    `json:"kind"`            // "image", "crash", "unschedulable", …: see package diagnosis
	App      string    `json:"app,omitempty"`   // the Application that it is of
	Object   string    `json:"object"`          // "pod apps/web-0"
	Sentence string    `json:"sentence"`        // in the form of Diagnosis.Cause
	Since    time.Time `json:"since,omitzero"`  // zero: not known
	Failed   bool      `json:"failed"`          // went wrong, rather than is slow
	Count    int       `json:"count,omitempty"` // of objects that are the same; 0 is one
	// Log are the last lines of the container that failed, of its last run but one
	// if it has been started again.
	Log []string `json:"log,omitempty"`
}

// Event is a warning of Kubernetes, listed once however often it was given.
type Event struct {
	Object  string    `json:"object"` // "pod apps/web-0"
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int       `json:"count"`
	Last    time.Time `json:"last"`
}

// Text writes the diagnosis for a terminal or a file.
func (d *Diagnosis) Text(w io.Writer) error {
	var b strings.Builder
	section := func(heading string, n int) {
		if n > 0 {
			b.WriteString("\n" + heading + ":\n")
		}
	}
	fmt.Fprintf(&b, "cause: %s\n", d.Cause)
	section("findings", len(d.Findings))
	for _, f := range d.Findings {
		more := ""
		if f.Count > 1 {
			more = fmt.Sprintf(" (%d of them)", f.Count)
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", f.Kind, f.Sentence, more)
		for _, l := range f.Log {
			fmt.Fprintf(&b, "    | %s\n", l)
		}
	}
	section("apps", len(d.Apps))
	for _, a := range d.Apps {
		fmt.Fprintf(&b, "  %s: sync %s, health %s: %s\n", a.Name, cmp.Or(a.Sync, "not known"), cmp.Or(a.Health, "not known"), a.Cause)
	}
	section("warnings, newest first", len(d.Events))
	for _, e := range d.Events {
		fmt.Fprintf(&b, "  %s %s %s (%d): %s\n", e.Last.UTC().Format("15:04:05"), e.Object, e.Reason, e.Count, e.Message)
	}
	section("not looked at", len(d.Gaps))
	for _, g := range d.Gaps {
		fmt.Fprintf(&b, "  %s\n", g)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
