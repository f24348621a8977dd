package diagnosis

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// The kinds of findings besides readiness.TroubleKind and argo.ProblemKind.
const (
	kindAPI     = "api"     // the API does not respond
	kindNode    = "node"    // a node is not ready or short of a resource
	kindClaim   = "claim"   // a claim has no volume
	kindRefused = "refused" // pods cannot be created
	kindJob     = "job"     // a Job failed
	kindBinding = "binding" // a claim that may just be slow
)

// kinds returns all kinds, the most specific first: of two findings of an app, the one
// whose kind is earlier is the cause. Failures of any kind come before what is only slow.
func kinds() []string {
	troubles := func(from, to readiness.TroubleKind) []string {
		var out []string
		for _, k := range readiness.TroubleKinds()[from.Order() : to.Order()+1] {
			out = append(out, string(k))
		}
		return out
	}
	return slices.Concat(
		[]string{kindAPI, string(argo.Unreadable), string(argo.NotApplied)},
		troubles(readiness.TroubleImage, readiness.TroubleNetwork),
		[]string{kindClaim, kindRefused},
		troubles(readiness.TroubleVolume, readiness.TroubleProbe),
		[]string{string(argo.HookFailed), kindJob, string(argo.SyncFailed), kindNode, string(argo.Unhealthy)},
		troubles(readiness.TroubleUnready, readiness.TroubleStarting),
		[]string{kindBinding, string(argo.HookRuns), string(argo.Waits), string(argo.Differs)},
	)
}

type object struct{ kind, namespace, name string }

// String returns "pod apps/web-0".
func (o object) String() string {
	switch {
	case o.name == "":
		return ""
	case o.namespace == "":
		return lower(o.kind) + " " + o.name
	}
	return lower(o.kind) + " " + o.namespace + "/" + o.name
}

// lower returns a kind as it is written in a sentence.
func lower(kind string) string {
	if kind == "PersistentVolumeClaim" {
		return "claim"
	}
	return strings.ToLower(kind[:min(1, len(kind))]) + kind[min(1, len(kind)):]
}

type finding struct {
	kind   string
	app    string
	wave   int
	object object
	silent bool   // the text names the object
	text   string // one line
	since  time.Time
	failed bool
	count  int

	pod     *corev1.Pod // that is in trouble
	trouble readiness.Trouble
	owner   object             // the workload of the pod, or whose pods cannot be created
	child   string             // the app that an app waits for
	service *readiness.Refusal // of a webhook that does not respond
	root    *finding           // its cause
	through string             // how, in a clause; may be empty
	log     []string
}

// findings extracts everything unhealthy from the facts, unsorted and without causes.
func (f *Facts) findings() []*finding {
	if f.Down != "" {
		return []*finding{{kind: kindAPI, text: readiness.Short(f.Scope.clean(f.Down), 2*maxText), failed: true}}
	}
	out := slices.Concat(f.nodeFindings(), f.claimFindings(), f.podFindings(), f.refusedFindings(), f.jobFindings(), f.appFindings())
	hooks := map[object]bool{} // failed hooks, which Argo CD reports, too
	for _, x := range out {
		hooks[x.object] = hooks[x.object] || x.kind == string(argo.HookFailed)
	}
	out = slices.DeleteFunc(out, func(x *finding) bool { return x.kind == kindJob && hooks[x.object] })
	for _, x := range out {
		if x.app == "" {
			x.app = f.appOf(x.owner)
		}
		if x.app == "" {
			x.app = f.appOf(x.object)
		}
		if i := f.app(x.app); i != nil {
			x.wave = i.Wave
		}
		x.text = readiness.Short(f.Scope.clean(x.text), maxText)
	}
	return collapse(out)
}

// collapse merges equal findings about one workload or its pods.
func collapse(all []*finding) []*finding {
	type same struct {
		kind, text string
		owner      object
	}
	seen := map[same]*finding{}
	var out []*finding
	for _, x := range all {
		key := same{x.kind, x.text, x.owner}
		if x.pod != nil {
			key.text = "" // only one of them has had its log read
		}
		if first := seen[key]; first != nil && x.owner.name != "" {
			first.count++
			if !x.since.IsZero() && x.since.Before(first.since) {
				first.since = x.since
			}
			continue
		}
		x.count = 1
		seen[key] = x
		out = append(out, x)
	}
	return out
}

func (f *Facts) app(name string) *argo.Application {
	for i := range f.Apps {
		if f.Apps[i].Name == name && name != "" {
			return &f.Apps[i]
		}
	}
	return nil
}

// appOf returns the name of the Application that an object belongs to: the one that owns
// it, else the only one in its namespace. It is empty if there is none.
func (f *Facts) appOf(o object) string {
	if o.name == "" {
		return ""
	}
	for _, a := range f.Apps {
		if a.Owns(o.kind, o.namespace, o.name) {
			return a.Name
		}
	}
	if o.namespace == "" || ours(o.namespace) || f.engine(o.namespace) {
		return ""
	}
	only := ""
	for _, a := range f.Apps {
		if a.Destination != o.namespace {
			continue
		}
		if only != "" {
			return ""
		}
		only = a.Name
	}
	return only
}

// ours reports whether a namespace belongs to Kubernetes or to Slipway.
func ours(namespace string) bool {
	return namespace == "kube-system" || strings.HasPrefix(namespace, kube.FieldManager+"-")
}

// engine reports whether Applications live in a namespace: it is Argo CD's.
func (f *Facts) engine(namespace string) bool {
	return slices.ContainsFunc(f.Apps, func(a argo.Application) bool { return a.Namespace == namespace })
}

// within reports whether a namespace is in scope.
func (f *Facts) within(namespace string) bool {
	if len(f.Scope.Namespaces) == 0 || slices.Contains(f.Scope.Namespaces, namespace) || ours(namespace) {
		return true
	}
	return slices.ContainsFunc(f.Apps, func(a argo.Application) bool {
		return a.Destination == namespace || a.Namespace == namespace ||
			slices.ContainsFunc(a.Resources, func(r argo.Resource) bool { return r.Namespace == namespace })
	})
}
