package history

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/slipway-sh/slipway/pipeline/lock"
)

// Anomaly is something that must not happen.
type Anomaly struct {
	Kind   Kind
	Says   string
	Events []Event // what shows it
}

// Kind is what an anomaly is about.
type Kind string

// The kinds.
const (
	Twice   Kind = "twice"   // a generation was taken twice, or after a higher one
	Overlap Kind = "overlap" // an attempt began for one holder when the next one had the lock
	Unheld  Kind = "unheld"  // a write was accepted from a holder that had lost the lock before it began
	Missing Kind = "missing" // what the journal had accepted is not there
)

func (a Anomaly) String() string {
	s := string(a.Kind) + ": " + a.Says
	for _, e := range a.Events {
		s += "\n\t" + e.String()
	}
	return s
}

// Check returns the anomalies of a history, as Records returns it.
func Check(events []Event) []Anomaly {
	var all []Anomaly
	for _, scan := range []func([]Event) []Anomaly{twice, overlaps, late, unheld, missing} {
		all = append(all, scan(events)...)
	}
	return all
}

// of are the events of some operations.
func of(events []Event, ops ...Op) []Event {
	var out []Event
	for _, e := range events {
		if slices.Contains(ops, e.Op) {
			out = append(out, e)
		}
	}
	return out
}

// twice: each generation is taken once, and after each lower one.
func twice(events []Event) (all []Anomaly) {
	takes := of(events, Take, Force)
	slices.SortStableFunc(takes, func(a, b Event) int { return cmp.Compare(a.Generation, b.Generation) })
	for i := 1; i < len(takes); i++ {
		lower, higher := takes[i-1], takes[i]
		switch {
		case lower.Generation == higher.Generation:
			all = append(all, Anomaly{Twice, fmt.Sprintf("generation %d has two holders", lower.Generation), []Event{lower, higher}})
		case higher.At < lower.At:
			all = append(all, Anomaly{Twice, fmt.Sprintf("generation %d was taken before %d", higher.Generation, lower.Generation), []Event{lower, higher}})
		}
	}
	return all
}

// successions tells since when there is a higher generation than another one: the events with
// which that is so, by generation.
type successions []Event

// after returns the successions by some operations: Take, and Force, which takes it away only.
func after(events []Event, ops ...Op) successions {
	takes := successions(of(events, ops...))
	slices.SortStableFunc(takes, func(a, b Event) int { return cmp.Compare(a.Generation, b.Generation) })
	for i := len(takes) - 2; i >= 0; i-- { // of those that are as high or higher, the first one
		if takes[i+1].At < takes[i].At {
			takes[i] = takes[i+1]
		}
	}
	return takes
}

// of returns the event since which a generation is not the highest any more.
func (s successions) of(generation int64) (e Event, ok bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].Generation > generation })
	if i == len(s) {
		return Event{}, false
	}
	return s[i], true
}

// overlaps: no attempt of a holder's run begins once the next holder has the lock.
func overlaps(events []Event) (all []Anomaly) {
	next := after(events, Take)
	for _, e := range of(events, Begin) {
		if n, ok := next.of(e.Generation); ok && e.At > n.At {
			all = append(all, Anomaly{Overlap, fmt.Sprintf("generation %d is let work %s after %d was taken",
				e.Generation, time.Duration(e.At-n.At), n.Generation), []Event{e, n}})
		}
	}
	return all
}

// late: an attempt that has not ended when the next holder has the lock, as one that stood still,
// fails because the lock is lost.
func late(events []Event) (all []Anomaly) {
	next := after(events, Take)
	for _, e := range events {
		if n, ok := next.of(e.Generation); ok && e.Op == Fail && e.Error != string(lock.CodeLost) && e.At > n.At {
			all = append(all, Anomaly{Overlap, fmt.Sprintf("%s of generation %d went on for %s after %d was taken, and failed with %q",
				e.Step, e.Generation, time.Duration(e.At-n.At), n.Generation, e.Error), []Event{e, n}})
		}
	}
	return all
}

// unheld: nothing is accepted from a holder who begins once the lock is of a higher generation.
// What had begun before may end later: it is below what the next holder writes.
func unheld(events []Event) (all []Anomaly) {
	next := after(events, Take, Force)
	for _, e := range of(events, End, Release, Put) {
		if n, ok := next.of(e.Generation); ok && e.At > n.At {
			all = append(all, Anomaly{Unheld, fmt.Sprintf("%s of generation %d began %s after %d was there",
				e.Op, e.Generation, time.Duration(e.At-n.At), n.Generation), []Event{e, n}})
		}
	}
	return all
}

// missing: each end of an attempt that was accepted is found, and the last attempt at a step is
// of nobody before the last holder that ended one.
func missing(events []Event) (all []Anomaly) {
	type attempt struct {
		run, step string
		n         int
	}
	found, generations, last := map[attempt]bool{}, map[string]int64{}, map[string]Event{}
	for _, e := range events {
		switch e.Op {
		case Found:
			found[attempt{e.Run, e.Step, e.N}] = true
		case Last:
			last[e.Step] = e
		case Take:
			generations[e.Run] = e.Generation
		}
	}
	for _, e := range of(events, End) {
		if !found[attempt{e.Run, e.Step, e.N}] {
			all = append(all, Anomaly{Missing, fmt.Sprintf("an attempt at %s by %s", e.Step, e.Run), []Event{e}})
		}
		if l := last[e.Step]; generations[l.Run] < e.Generation {
			all = append(all, Anomaly{Missing, fmt.Sprintf("the last attempt at %s is not by %s, or a later run", e.Step, e.Run), []Event{e, l}})
		}
	}
	return all
}
