package diagnosis

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

func (f *Facts) podFindings() []*finding {
	var out []*finding
	events := map[types.NamespacedName][]corev1.Event{}
	for _, e := range f.Events {
		if e.InvolvedObject.Kind == "Pod" {
			key := types.NamespacedName{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
			events[key] = append(events[key], e)
		}
	}
	pods := readiness.CurrentPods(f.Pods)
	for i := range pods {
		p := &pods[i]
		t, ok := readiness.PodTrouble(p, events[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}])
		if !ok || !f.within(p.Namespace) {
			continue
		}
		kind, name := readiness.Owner(p)
		owner := object{kind, p.Namespace, name}
		text := t.Text
		log := f.logOf(p)
		if t.Kind == readiness.TroubleCrash {
			text = readiness.Wrote(text, readiness.TellingLine(log))
		}
		if kind == "Job" {
			j := f.job(owner)
			if j != nil && jobIs(j, batchv1.JobComplete) != nil {
				continue
			}
			if t.Kind.Failed() {
				text = f.jobName(owner) + ": " + text
			}
		}
		out = append(out, &finding{
			kind: string(t.Kind), object: object{"Pod", p.Namespace, p.Name}, text: text, since: t.Since,
			failed: t.Kind.Failed(), pod: p, trouble: t, owner: owner, log: log,
		})
	}
	return out
}

// logOf returns the last lines of the container in trouble, shortened and without
// secrets.
func (f *Facts) logOf(p *corev1.Pod) []string {
	lines := f.Logs[p.Namespace+"/"+p.Name]
	out := make([]string, 0, len(lines))
	for _, l := range lines[max(0, len(lines)-logLines):] {
		// Clean more than is shown, so that no secret is cut in two before.
		out = append(out, readiness.Short(f.Scope.clean(readiness.Short(l, 4*maxText)), maxText))
	}
	return out
}

// refusalAge is how old a warning that pods cannot be created may be. Controllers back
// off between attempts, so it can be old and still apply.
const refusalAge = 20 * time.Minute

// refusedFindings returns the workloads whose pods cannot be created.
func (f *Facts) refusedFindings() []*finding {
	newest := f.newestPods()
	last := map[object]corev1.Event{}
	for _, e := range f.Events {
		if e.Reason != "FailedCreate" || !f.within(e.InvolvedObject.Namespace) {
			continue
		}
		o := f.workload(e.InvolvedObject)
		made, there := newest[o]
		if at := readiness.LastSeen(e); f.Now.Sub(at) > refusalAge || at.Before(made) {
			continue
		}
		// A controller that sees the cluster as it was tries to make again what it has made.
		if there && strings.Contains(e.Message, "already exists") {
			continue
		}
		if known, ok := last[o]; !ok || readiness.LastSeen(e).After(readiness.LastSeen(known)) {
			last[o] = e
		}
	}
	out := make([]*finding, 0, len(last))
	for o, e := range last {
		r := readiness.ReadRefusal(e.Message)
		x := &finding{
			kind: kindRefused, object: o, silent: true, owner: o, text: "no pod of " + o.kind + " " + o.name + " can be made: " + r.Text,
			since: readiness.FirstSeen(e), failed: true,
		}
		if r.Service != "" {
			x.service = &r
		}
		out = append(out, x)
	}
	return out
}

// workload returns the object of an event, or for a ReplicaSet its Deployment if that is
// known.
func (f *Facts) workload(r corev1.ObjectReference) object {
	if i := strings.LastIndexByte(r.Name, '-'); r.Kind == "ReplicaSet" && i > 0 {
		d := object{"Deployment", r.Namespace, r.Name[:i]}
		_, there := f.newestPods()[d]
		if there || slices.ContainsFunc(f.Apps, func(a argo.Application) bool { return a.Owns(d.kind, d.namespace, d.name) }) {
			return d
		}
	}
	return object{r.Kind, r.Namespace, r.Name}
}

// newestPods returns when the newest pod of each workload was created.
func (f *Facts) newestPods() map[object]time.Time {
	if f.newest != nil {
		return f.newest
	}
	f.newest = map[object]time.Time{}
	for i := range f.Pods {
		kind, name := readiness.Owner(&f.Pods[i])
		o := object{kind, f.Pods[i].Namespace, name}
		if at, known := f.newest[o]; !known || f.Pods[i].CreationTimestamp.After(at) {
			f.newest[o] = f.Pods[i].CreationTimestamp.Time
		}
	}
	return f.newest
}
