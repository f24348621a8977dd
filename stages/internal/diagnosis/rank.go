package diagnosis

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

const (
	maxFindings = 20
	maxEvents   = 20
	maxApps     = 50
	maxGaps     = 20
	maxText     = 400 // characters of a text, and of a line of a log
)

// Diagnose returns the diagnosis. It does no I/O and is deterministic.
func (f *Facts) Diagnose() *contract.Diagnosis {
	all := f.ranked()
	d := &contract.Diagnosis{
		At: f.Now, Findings: []contract.Finding{}, Apps: f.appCauses(), Events: f.warnings(),
		Gaps: append([]string{}, f.Gaps[:min(len(f.Gaps), maxGaps)]...),
	}
	d.Findings = f.report(all)
	if len(all) == 0 {
		d.Cause = f.noCause()
		return d
	}
	d.Cause, d.Known = d.Findings[0].Sentence, d.Findings[0].Failed
	return d
}

// App explains in one sentence, without the app's name, why the app of that name is not
// Synced and Healthy. failed reports that something failed, as opposed to being slow.
// The cause is empty if the app is done.
func (f *Facts) App(name string) (cause string, failed bool) {
	a := f.app(name)
	for _, x := range f.ranked() {
		if x.app == name {
			t := f.describe(x)
			return strings.TrimPrefix(t.Sentence, "app "+name+": "), t.Failed || a != nil && a.Failed()
		}
	}
	if a == nil || a.Waiting("") == "" {
		return "", false
	}
	return a.Explain(), a.Failed()
}

// ranked returns the findings, the cause first. They are sorted by, in this order:
//
//  1. findings about the app in question, or mentioned by the error of a step;
//  2. other findings before apps that only wait for another app;
//  3. failures before what may only be slow;
//  4. apps that are not done, then nodes, then the rest by the scope's namespaces;
//  5. the wave of the app, lower first, as later waves wait for it;
//  6. the kind: see kinds;
//  7. the earlier start;
//  8. the names, so that the order is stable.
func (f *Facts) ranked() []*finding {
	if f.sorted != nil {
		return f.sorted
	}
	all := f.explain(f.findings())
	mentioned, failed := map[*finding]bool{}, map[*finding]bool{}
	for _, x := range all {
		mentioned[x] = f.mentions(x) || x.app != "" && x.app == f.Scope.App
		root, _ := x.origin()
		failed[x] = x.failed || root.failed
	}
	order := kinds()
	class := func(x *finding) int {
		if a := f.app(x.app); a != nil && a.Waiting("") != "" {
			return 0
		}
		if x.kind == kindNode || x.kind == kindAPI {
			return 1
		}
		if i := slices.Index(f.Scope.Namespaces, x.object.namespace); i >= 0 {
			return 2 + i
		}
		return 2 + len(f.Scope.Namespaces)
	}
	slices.SortStableFunc(all, func(a, b *finding) int {
		return cmp.Or(
			first(mentioned[a], mentioned[b]),
			first(a.child == "", b.child == ""),
			first(failed[a], failed[b]),
			cmp.Compare(class(a), class(b)),
			cmp.Compare(a.wave, b.wave),
			cmp.Compare(slices.Index(order, a.kind), slices.Index(order, b.kind)),
			earlier(a, b),
			strings.Compare(a.app, b.app),
			strings.Compare(a.object.String(), b.object.String()),
			strings.Compare(a.text, b.text),
		)
	})
	f.sorted = all
	return all
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// earlier compares times; unknown ones come last.
func earlier(a, b *finding) int {
	if a.since.IsZero() || b.since.IsZero() {
		return first(!a.since.IsZero(), !b.since.IsZero())
	}
	return a.since.Compare(b.since)
}

// mentions reports whether the error of a failed step names x's app, object or workload.
func (f *Facts) mentions(x *finding) bool {
	var forms []string
	if x.app != "" {
		forms = append(forms, `app `+regexp.QuoteMeta(x.app))
	}
	for _, o := range []object{x.object, x.owner} {
		switch {
		case o.name == "":
		case o.namespace == "":
			forms = append(forms, `(?i:`+regexp.QuoteMeta(o.kind)+`) `+regexp.QuoteMeta(o.name))
		default:
			forms = append(forms, `(?i:`+regexp.QuoteMeta(o.kind)+`) (`+regexp.QuoteMeta(o.namespace)+`/)?`+regexp.QuoteMeta(o.name))
		}
	}
	return slices.ContainsFunc(f.Scope.Failed, func(s contract.FailedStep) bool {
		named := slices.ContainsFunc([]string{x.app, x.object.name, x.owner.name}, func(name string) bool {
			return name != "" && strings.Contains(s.Error, name)
		})
		return named && regexp.MustCompile(`\b(`+strings.Join(forms, "|")+`)([^\w.-]|[.-]?$|[.-]\s)`).MatchString(s.Error)
	})
}

// report describes the root cause of each finding, once for each app, followed by the
// findings that have a cause, by themselves.
func (f *Facts) report(all []*finding) []contract.Finding {
	type origin struct {
		root *finding
		app  string
	}
	out := []contract.Finding{}
	seen, roots := map[origin]bool{}, map[*finding]bool{}
	for _, x := range all {
		root, _ := x.origin()
		if o := (origin{root, x.app}); !seen[o] && (x != root || !roots[root]) {
			seen[o], roots[root] = true, true
			out = append(out, f.describe(x))
		}
	}
	for _, x := range all {
		if x.root != nil {
			alone := *x
			alone.root = nil
			out = append(out, f.describe(&alone))
		}
	}
	return out[:min(len(out), maxFindings)]
}

// describe converts x; its sentence names the root cause.
func (f *Facts) describe(x *finding) contract.Finding {
	root, through := x.origin()
	where, since := "", root.since
	for y := x; y != nil; y = y.root { // ends with the finding nearest to the root that has an object
		if y.silent || y.object.name == "" {
			continue
		}
		where = y.object.String()
		if x.app != "" && y.app == x.app {
			where = lower(y.object.kind) + " " + y.object.name
		}
	}
	if since.IsZero() {
		since = x.since
	}
	sentence := readiness.Sentence(strings.Join(append(through, root.text), ": "), where, since, f.Now)
	if x.app != "" {
		sentence = "app " + x.app + ": " + sentence
	}
	t := contract.Finding{
		Kind: root.kind, App: x.app, Object: root.object.String(), Sentence: sentence, Since: since,
		Failed: x.failed || root.failed, Log: root.log,
	}
	if x.count > 1 {
		t.Count = x.count
	}
	return t
}

// noCause describes what was not examined if nothing unhealthy was found.
func (f *Facts) noCause() string {
	text := "no cause was found in the cluster"
	if len(f.Gaps) > 0 {
		text += "; not looked at: " + strings.Join(f.Gaps[:min(len(f.Gaps), 3)], "; ")
	}
	if len(f.Scope.Failed) > 0 {
		text += "; see the error of " + f.Scope.Failed[0].String()
	}
	return text
}

// appCauses returns the Applications that are not done, by wave and name.
func (f *Facts) appCauses() []contract.App {
	out := []contract.App{}
	for _, a := range f.Apps {
		if a.Waiting("") == "" {
			continue
		}
		cause, _ := f.App(a.Name)
		out = append(out, contract.App{
			Name: a.Name, Namespace: a.Namespace, Wave: a.Wave, Sync: a.Sync, Health: a.Health, Revision: a.Revision,
			Cause: f.Scope.clean(cause),
		})
	}
	slices.SortFunc(out, func(a, b contract.App) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
	return out[:min(len(out), maxApps)]
}

// warnings returns the events in scope, newest first.
func (f *Facts) warnings() []contract.Event {
	out := []contract.Event{}
	for _, e := range f.Events {
		o := object{e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name}
		if !f.within(o.namespace) || e.Reason == pulling {
			continue
		}
		n := max(1, int(e.Count))
		if e.Series != nil {
			n = max(n, int(e.Series.Count))
		}
		message := readiness.Short(f.Scope.clean(readiness.OneLine(e.Message)), maxText)
		out = append(out, contract.Event{Object: o.String(), Reason: e.Reason, Message: message, Count: n, Last: readiness.LastSeen(e).UTC()})
	}
	slices.SortFunc(out, func(a, b contract.Event) int {
		return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.Object, b.Object), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return out[:min(len(out), maxEvents)]
}
