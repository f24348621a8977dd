package argo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// ProblemKind is a kind of reason why an Application is not Synced and Healthy.
type ProblemKind string

// The kinds, in the order in which Problems returns them.
const (
	Unreadable ProblemKind = "unreadable" // the desired state cannot be read or compared
	NotApplied ProblemKind = "notApplied" // the API server rejected an object
	HookFailed ProblemKind = "hookFailed"
	SyncFailed ProblemKind = "syncFailed" // the sync as a whole
	Unhealthy  ProblemKind = "unhealthy"  // an object is not healthy
	HookRuns   ProblemKind = "hookRuns"
	Waits      ProblemKind = "waits" // a sync is in progress, or nothing more is known
	Differs    ProblemKind = "differs"
)

// Problem is one reason why an Application is not Synced and Healthy.
type Problem struct {
	Kind   ProblemKind
	Object Resource  // the object concerned; the zero value: the Application itself
	Text   string    // one line, without the object
	Since  time.Time // zero if unknown
	Failed bool      // something failed, as opposed to being slow
}

// String returns p on one line, with its object.
func (p Problem) String() string {
	name := p.Object.Kind + " " + p.Object.Name
	switch p.Kind {
	case NotApplied:
		return name + " was not applied: " + p.Text
	case HookFailed:
		return "hook " + name + " failed" + colon(p.Text)
	case HookRuns:
		return "hook " + name + " has not finished" + colon(p.Text)
	case Unhealthy:
		return name + " is " + p.Object.Health + colon(p.Text)
	}
	return p.Text
}

// Problems returns why a is not Synced and Healthy according to Argo CD, the most
// specific reason first.
func (a Application) Problems() []Problem {
	var out []Problem
	for _, c := range a.Conditions {
		if strings.HasSuffix(c.Type, "Error") && c.Type != "SyncError" {
			out = append(out, Problem{Kind: Unreadable, Text: readiness.OneLine(c.Message), Since: parse(c.Since), Failed: true})
		}
	}
	out = append(out, a.operationProblems()...)
	for _, health := range []string{"Degraded", "Missing", "Suspended", "Unknown", "Progressing"} {
		for _, r := range a.Resources {
			if r.Health == health {
				out = append(out, Problem{Kind: Unhealthy, Object: r, Text: readiness.OneLine(r.Message), Failed: health == "Degraded"})
			}
		}
	}
	for _, r := range a.Operation.Running {
		out = append(out, Problem{Kind: HookRuns, Object: r.resource(), Text: readiness.OneLine(r.Message), Since: parse(a.Operation.Started)})
	}
	for _, c := range a.Conditions {
		if c.Type == "SyncError" {
			out = append(out, Problem{Kind: SyncFailed, Text: readiness.OneLine(c.Message), Since: parse(c.Since), Failed: true})
		}
	}
	if a.Operation.Phase == "Running" && a.Operation.Message != "" {
		out = append(out, Problem{Kind: Waits, Text: readiness.OneLine(a.Operation.Message), Since: parse(a.Operation.Started)})
	}
	for _, r := range a.Resources {
		if r.Status == "OutOfSync" {
			out = append(out, Problem{Kind: Differs, Object: r, Text: fmt.Sprintf("%s %s differs from the branch", r.Kind, r.Name)})
		}
	}
	if a.HealthText != "" && a.Health != "Healthy" {
		out = append(out, Problem{Kind: Waits, Text: readiness.OneLine(a.HealthText), Failed: a.Health == "Degraded"})
	}
	if len(out) == 0 && a.Waiting("") != "" {
		out = append(out, Problem{Kind: Waits, Text: a.state(), Failed: a.Health == "Degraded"})
	}
	return out
}

func (a Application) operationProblems() []Problem {
	var out []Problem
	since := parse(a.Operation.Started)
	for _, hooks := range []bool{false, true} {
		for _, r := range a.Operation.Failed {
			if r.Hook != hooks {
				continue
			}
			p := Problem{Kind: NotApplied, Object: r.resource(), Text: cmp.Or(readiness.OneLine(r.Message), "no message"), Since: since, Failed: true}
			if r.Hook {
				p.Kind, p.Text = HookFailed, readiness.OneLine(r.Message)
			}
			out = append(out, p)
		}
	}
	if a.GivenUp() {
		text := fmt.Sprintf("sync %s: %s", strings.ToLower(a.Operation.Phase), cmp.Or(readiness.OneLine(a.Operation.Message), "no message"))
		out = append(out, Problem{Kind: SyncFailed, Text: text, Since: since, Failed: true})
	}
	return out
}

func (r Result) resource() Resource {
	return Resource{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// parse parses a time of Argo CD; it is zero if there is none.
func parse(at string) time.Time {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Explain describes on one line why a is not Synced and Healthy according to Argo CD.
func (a Application) Explain() string {
	for _, p := range a.Problems() {
		return p.String()
	}
	return a.state()
}

func (a Application) state() string {
	return fmt.Sprintf("sync %s, health %s", cmp.Or(a.Sync, "not known"), cmp.Or(a.Health, "not known"))
}

// Failed reports whether something about a failed, as opposed to being slow.
func (a Application) Failed() bool {
	return a.Health == "Degraded" || slices.ContainsFunc(a.Problems(), func(p Problem) bool { return p.Failed })
}

// Owns reports whether the object belongs to a: it is one of its resources or a hook of
// its last sync.
func (a Application) Owns(kind, namespace, name string) bool {
	is := func(k, ns, n string) bool {
		return k == kind && n == name && cmp.Or(ns, a.Destination) == namespace
	}
	return slices.ContainsFunc(a.Resources, func(r Resource) bool { return is(r.Kind, r.Namespace, r.Name) }) ||
		slices.ContainsFunc(a.Operation.Failed, func(r Result) bool { return is(r.Kind, r.Namespace, r.Name) }) ||
		slices.ContainsFunc(a.Operation.Running, func(r Result) bool { return is(r.Kind, r.Namespace, r.Name) })
}

// Children returns the names of the Applications among a's resources, sorted.
func (a Application) Children() []string {
	var out []string
	for _, r := range a.Resources {
		if r.Group == Applications().Group && r.Kind == "Application" {
			out = append(out, r.Name)
		}
	}
	slices.Sort(out)
	return out
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}
