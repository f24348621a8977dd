package argo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tracker follows the Applications of a platform until every one is Synced and
// Healthy at a revision. It decides; its caller reads the cluster and acts. Not
// safe for concurrent use.
type Tracker struct {
	Root     string        // name of the root Application
	Revision string        // commit that all must be at
	Expected []string      // names of all others; exactly these must be there
	Deadline time.Duration // what each may take

	looks    int
	apps     map[string]*progress
	best     int       // how far it has been: apps there + apps done
	advanced time.Time // when best grew
}

// progress is what a Tracker remembers of one Application.
type progress struct {
	clock      time.Time // since when its deadline runs; zero: its wave has not begun
	asked      time.Time // last refresh asked for
	before     string    // Reconciled when the tracker first saw it
	fresh      bool      // compared by a controller that runs now
	resynced   bool
	terminated string // Started of the sync that was ended
}

// How long it takes until a refresh is asked for again: when the branch was not
// at the revision yet, and when the comparison fell into the same second as the
// one before, so that it cannot be told from it: a second later it can.
const (
	refreshEvery = 10 * time.Second
	askAgain     = time.Second
)

// Action is something to do to an Application.
type Action struct {
	App   Application
	Patch []byte // merge patch
	Look  bool   // it only asks Argo CD to compare again
	Why   string // for the log
}

// Verdict is what a Tracker concludes from one look.
type Verdict struct {
	Done    bool
	Actions []Action
	Line    string // "2/4 apps; waiting for web: Progressing"
	// Missing and Unexpected are set when the root is done and its children are
	// not the expected ones: waiting would not help.
	Missing, Unexpected []string
	// Late is the first Application whose deadline has passed; nil: none.
	Late  *Application
	Stale bool // Late has not been looked at by Argo CD since the tracker began
	// Replaced is the commit that the branch is at in place of Revision, which
	// therefore never arrives; empty when Argo CD saw none.
	Replaced string
	Why      string // what Late waits for
	// Absent are the Applications that never appeared when the root is Late.
	Absent []string
}

// Look takes all Applications of the cluster as they are at now.
func (t *Tracker) Look(now time.Time, all []Application) Verdict {
	if t.apps == nil {
		t.advanced, t.apps = now, map[string]*progress{}
	}
	t.looks++
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
		t.judge(now, root, children, absent, &v)
	}
	return v
}

// pick finds the root and the expected Applications, in the order of their
// waves and names. Of two of one name in different namespaces the root's
// namespace decides.
func (t *Tracker) pick(all []Application) (*Application, []Application) {
	var root *Application
	for i := range all {
		if all[i].Name == t.Root {
			root = &all[i]
		}
	}
	var children []Application
	for _, a := range all {
		if a.Name == t.Root || !slices.Contains(t.Expected, a.Name) {
			continue
		}
		if i := slices.IndexFunc(children, func(c Application) bool { return c.Name == a.Name }); i >= 0 {
			if root != nil && a.Namespace == root.Namespace {
				children[i] = a
			}
			continue
		}
		children = append(children, a)
	}
	slices.SortFunc(children, func(a, b Application) int {
		if a.Wave != b.Wave {
			return a.Wave - b.Wave
		}
		return strings.Compare(a.Name, b.Name)
	})
	return root, children
}

// follow updates what is known of a and asks for what would get it further.
func (t *Tracker) follow(now time.Time, a Application, v *Verdict) *progress {
	p := t.apps[a.Name]
	if p == nil {
		p = &progress{}
		if t.looks == 1 { // what appears later was compared after the beginning
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
	pause := refreshEvery
	if !p.fresh {
		pause = askAgain
	}
	due := p.asked.IsZero() || now.Sub(p.asked) >= pause
	if (!p.fresh || a.Revision != t.Revision) && due && !a.Refreshing {
		p.asked = now
		v.Actions = append(v.Actions, Action{App: a, Patch: RefreshPatch(), Look: true, Why: "look at the branch"})
	}
	switch {
	case a.Stuck(t.Revision) && p.terminated != a.Operation.Started:
		p.terminated = a.Operation.Started
		v.Actions = append(v.Actions, Action{App: a, Patch: TerminatePatch(), Why: "end the sync to " + Short(a.Operation.Revision)})
	case p.fresh && a.Revision == t.Revision && a.GivenUp() && !p.resynced && !a.Outdated:
		p.resynced = true
		v.Actions = append(v.Actions, Action{App: a, Patch: SyncPatch(t.Revision), Why: "sync again, the last one had failed"})
	}
	return p
}

// waiting is Application.Waiting, and what is not fresh is not believed.
func (t *Tracker) waiting(a Application, p *progress) string {
	if why := a.Waiting(t.Revision); why != "" {
		return why
	}
	if !p.fresh {
		return "not compared since Argo CD was asked"
	}
	return ""
}

// startClocks lets the deadline run for each Application whose earlier waves are
// done. A clock that runs is not stopped.
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

// judge looks whose deadline has passed. The root is late when no child is under
// way and nothing has moved for the time that an app may take.
func (t *Tracker) judge(now time.Time, root *Application, children []Application, absent []string, v *Verdict) {
	if root != nil && t.apps[root.Name].fresh && root.Revision != "" && root.Revision != t.Revision {
		v.Replaced = root.Revision
	}
	underWay := false
	for i, a := range children {
		p := t.apps[a.Name]
		if t.waiting(a, p) == "" {
			continue
		}
		if p.clock.IsZero() {
			continue
		}
		underWay = true
		if now.Sub(p.clock) >= t.Deadline {
			v.Late, v.Stale, v.Why = &children[i], !p.fresh, t.waiting(a, p)
			return
		}
	}
	if underWay || now.Sub(t.advanced) < t.Deadline {
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

// difference is what a holds and b does not, sorted.
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
