package argo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// The codes of faults of Applications.
const (
	// CodeStale: Argo CD does not look at an Application.
	CodeStale fault.Code = "PRE-012"
	// CodeLate: an Application was not Synced and Healthy in time, and nothing says why.
	CodeLate fault.Code = "ORC-004"
)

// Tracker follows the Applications of a platform until all of them are Synced and
// Healthy at a revision. It only decides what to do; its caller reads the cluster and
// acts. It is not safe for concurrent use.
type Tracker struct {
	Namespace string        // of Argo CD, in which they all are
	Root      string        // name of the root Application
	Revision  string        // commit that all must be at
	Expected  []string      // names of all others; exactly these must exist
	Deadline  time.Duration // how long each may take

	updates  int
	apps     map[string]*progress
	best     int       // the most progress so far: existing apps + done apps
	advanced time.Time // when best last grew
}

type progress struct {
	clock      time.Time // when its deadline started to run; zero: its wave has not started
	requested  time.Time // when a refresh was last requested
	before     string    // Reconciled when the tracker first saw it
	fresh      bool      // compared since the tracker started
	resynced   bool
	terminated string // Started of the sync that was ended
}

// How long to wait before another refresh: when the branch was not at the revision yet,
// and when the last comparison was in the same second as the one before it and thus
// cannot be distinguished from it.
const (
	refreshInterval = 10 * time.Second
	refreshSoon     = time.Second
)

// Action is something to do to an Application.
type Action struct {
	App     Application
	Patch   []byte // merge patch
	Refresh bool   // it only makes Argo CD compare again
	Why     string // for the log
}

// Verdict is what a Tracker concludes from one update.
type Verdict struct {
	Done    bool
	Actions []Action
	Line    string // "2/4 apps; waiting for web: Progressing"
	First   string // app that is waited for, the others after it; empty: none that is there
	// Missing and Unexpected are set if the root is done but its children are not
	// the expected ones, so that waiting would not help.
	Missing, Unexpected []string
	// Late is the first Application whose deadline has passed; nil: none.
	Late  *Application
	Stale bool // Argo CD has not compared Late since the tracker started
	// Replaced is the commit that the branch is at instead of Revision, which
	// therefore never arrives; empty if Argo CD has seen no such commit.
	Replaced string
	Why      string // what Late waits for
	// Absent are the Applications that never appeared, if the root is Late.
	Absent []string
}

// Update evaluates all Applications of the cluster as they are at now.
func (t *Tracker) Update(now time.Time, all []Application) Verdict {
	if t.apps == nil {
		t.advanced, t.apps = now, map[string]*progress{}
	}
	t.updates++
	var v Verdict
	root, children := t.pick(all)
	done := 0
	var waiting []string
	for _, a := range children {
		p := t.follow(now, a, &v)
		why := t.waiting(a, p)
		if why == "" {
			done++
		} else {
			waiting = append(waiting, a.Name+": "+why)
			v.First = cmp.Or(v.First, a.Name)
		}
	}
	t.startClocks(now, children)
	if far := len(children) + done; far > t.best {
		t.best, t.advanced = far, now
	}
	absent := t.absent(children)
	for _, name := range absent {
		waiting = append(waiting, name+": not there yet")
	}
	rootWhy := "not there yet"
	if root != nil {
		rootWhy = t.waiting(*root, t.follow(now, *root, &v))
	}
	v.Line = fmt.Sprintf("%d/%d apps", done, len(t.Expected))
	if len(waiting) > 0 {
		v.Line += "; waiting for " + strings.Join(waiting, ", ")
	} else if rootWhy != "" {
		v.Line += "; waiting for " + t.Root + ": " + rootWhy
	}

	if root != nil && rootWhy == "" {
		v.Missing, v.Unexpected = difference(t.Expected, root.Children()), difference(root.Children(), t.Expected)
		if len(v.Missing)+len(v.Unexpected) > 0 {
			return v
		}
	}
	v.Done = root != nil && rootWhy == "" && len(t.Expected) > 0 && done == len(t.Expected)
	if !v.Done {
		t.checkDeadlines(now, root, children, absent, &v)
	}
	return v
}

// pick finds the root and the expected Applications, sorted by wave and name. All are in
// Argo CD's namespace; those of its users may be elsewhere, under the same names.
func (t *Tracker) pick(all []Application) (*Application, []Application) {
	var root *Application
	var children []Application
	for i, a := range all {
		switch {
		case a.Namespace != t.Namespace:
		case a.Name == t.Root:
			root = &all[i]
		case slices.Contains(t.Expected, a.Name):
			children = append(children, a)
		}
	}
	slices.SortFunc(children, func(a, b Application) int {
		return cmp.Or(a.Wave-b.Wave, strings.Compare(a.Name, b.Name))
	})
	return root, children
}

// follow updates the progress of a and adds the actions that a needs.
func (t *Tracker) follow(now time.Time, a Application, v *Verdict) *progress {
	p := t.apps[a.Name]
	if p == nil {
		p = &progress{}
		if t.updates == 1 { // apps that appear later were compared after the start
			p.before = a.Reconciled
		}
		t.apps[a.Name] = p
	}
	if !p.fresh && !a.Refreshing && a.Reconciled != "" && a.Reconciled != p.before {
		p.fresh = true
	}
	if a.Deleting {
		return p
	}
	pause := refreshInterval
	if !p.fresh {
		pause = refreshSoon
	}
	due := p.requested.IsZero() || now.Sub(p.requested) >= pause
	if (!p.fresh || a.Revision != t.Revision) && due && !a.Refreshing {
		p.requested = now
		v.Actions = append(v.Actions, Action{App: a, Patch: Refresh(), Refresh: true, Why: "refresh the branch"})
	}
	switch {
	case a.Stuck(t.Revision) && p.terminated != a.Operation.Started:
		p.terminated = a.Operation.Started
		v.Actions = append(v.Actions, Action{App: a, Patch: Terminate(), Why: "end the sync to " + Short(a.Operation.Revision)})
	case p.fresh && a.Revision == t.Revision && a.GivenUp() && !p.resynced && !a.Outdated:
		p.resynced = true
		v.Actions = append(v.Actions, Action{App: a, Patch: syncPatch(t.Revision), Why: "sync again, the last one had failed"})
	}
	return p
}

// waiting is Application.Waiting, but does not trust a comparison that is not fresh.
func (t *Tracker) waiting(a Application, p *progress) string {
	if why := a.Waiting(t.Revision); why != "" {
		return why
	}
	if !p.fresh {
		return "not compared since Argo CD was asked to refresh"
	}
	return ""
}

// startClocks starts the deadline of each Application whose earlier waves are done. A
// running clock is never stopped.
func (t *Tracker) startClocks(now time.Time, children []Application) {
	for _, a := range children {
		p := t.apps[a.Name]
		if !p.clock.IsZero() {
			continue
		}
		earlier := slices.ContainsFunc(children, func(b Application) bool {
			return b.Wave < a.Wave && t.waiting(b, t.apps[b.Name]) != ""
		})
		if !earlier {
			p.clock = now
		}
	}
}

// checkDeadlines determines whose deadline has passed. The root is late if no child is in
// progress and nothing has advanced for as long as an app may take.
func (t *Tracker) checkDeadlines(now time.Time, root *Application, children []Application, absent []string, v *Verdict) {
	if root != nil && t.apps[root.Name].fresh && root.Revision != "" && root.Revision != t.Revision {
		v.Replaced = root.Revision
	}
	inProgress := false
	for i, a := range children {
		p := t.apps[a.Name]
		if t.waiting(a, p) == "" || p.clock.IsZero() {
			continue
		}
		inProgress = true
		if now.Sub(p.clock) >= t.Deadline {
			v.Late, v.Stale, v.Why = &children[i], !p.fresh, t.waiting(a, p)
			return
		}
	}
	if inProgress || now.Sub(t.advanced) < t.Deadline {
		return
	}
	v.Absent = absent
	if root == nil {
		v.Late, v.Stale = &Application{Name: t.Root}, true
		return
	}
	v.Late, v.Stale, v.Why = root, !t.apps[root.Name].fresh, t.waiting(*root, t.apps[root.Name])
}

func (t *Tracker) absent(children []Application) []string {
	var there []string
	for _, a := range children {
		there = append(there, a.Name)
	}
	return difference(t.Expected, there)
}

func difference(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}
