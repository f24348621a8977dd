// Package argo interprets Argo CD's Applications: their progress, and what they are
// waiting for. It works on objects that the caller has read and does no I/O.
package argo

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Applications returns the resource of Applications.
func Applications() schema.GroupVersionResource { return resource("applications") }

// ApplicationSets returns the resource of ApplicationSets.
func ApplicationSets() schema.GroupVersionResource { return resource("applicationsets") }

// AppProjects returns the resource of AppProjects.
func AppProjects() schema.GroupVersionResource { return resource("appprojects") }

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: name}
}

// Annotations of Argo CD.
const (
	WaveAnnotation    = "argocd.argoproj.io/sync-wave"
	RefreshAnnotation = "argocd.argoproj.io/refresh"
	SyncOptions       = "argocd.argoproj.io/sync-options"   // of an object
	SkipReconcile     = "argocd.argoproj.io/skip-reconcile" // of an Application that is left alone
	CascadeFinalizer  = "resources-finalizer.argocd.argoproj.io"
	StoppedAnnotation = "slipway.sh/stopped" // of one that is left alone while Slipway changes data

	refreshSetAnnotation = "argocd.argoproj.io/application-set-refresh"
)

// NotDeleted adds to the sync options of an object that it stays when its Application is
// removed.
func NotDeleted(options string) string {
	const keep = "Delete=false"
	all := strings.FieldsFunc(options, func(r rune) bool { return r == ',' })
	all = slices.DeleteFunc(all, func(o string) bool { return strings.HasPrefix(strings.TrimSpace(o), "Delete=") })
	return strings.Join(append(all, keep), ",")
}

// Stays reports whether an object stays when its Application is removed.
func Stays(o *unstructured.Unstructured) bool {
	notes := o.GetAnnotations()
	return notes["helm.sh/resource-policy"] == "keep" || slices.ContainsFunc(strings.Split(notes[SyncOptions], ","), func(option string) bool {
		return strings.TrimSpace(option) == "Delete=false"
	})
}

// Application is what the steps need to know of an Application.
type Application struct {
	Name      string
	Namespace string
	Labels    map[string]string
	Wave      int
	Deleting  bool

	Sync        string // "Synced", "OutOfSync", "Unknown"; empty before the first reconciliation
	Health      string // "Healthy", "Progressing", …; empty before the first reconciliation
	HealthText  string
	Revision    string // commit that the desired state was read from
	Refreshing  bool   // a refresh was requested and is not done yet
	Reconciled  string // RFC 3339, seconds; when the controller last compared it
	Outdated    bool   // the last comparison used a different source than the current one
	Conditions  []Condition
	Operation   Operation
	Resources   []Resource
	Destination string // namespace
}

// Condition is a warning or an error that Argo CD reports on an Application.
type Condition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Since   string `json:"lastTransitionTime"` // RFC 3339
}

// Operation is the last or the current sync.
type Operation struct {
	Pending  bool   // requested, not started
	Phase    string // "Running", "Succeeded", "Failed", "Error", "Terminating"; empty when there was none
	Message  string
	Revision string // commit that it syncs
	Started  string // RFC 3339
	Outdated bool   // it syncs a different source than the current one
	Failed   []Result
	Running  []Result // hooks in progress
}

// Result is an object of a sync that failed or is in progress.
type Result struct {
	Kind, Namespace, Name string
	Message               string
	Hook                  bool
}

// Missing is the health of a Resource that an Application declares but Argo CD did not create, such
// as one that the project forbids. An object of that name belongs to somebody else. Argo CD writes
// it only with controller.resource.health.persist: "true".
const Missing = "Missing"

// Resource is an object that an Application owns.
type Resource struct {
	Group, Kind, Namespace, Name string
	Status                       string // "Synced", "OutOfSync"
	Health                       string // empty if the kind has no health
	Message                      string // of its health
}

// wire is the part of the custom resource that this package reads.
type wire struct {
	Spec struct {
		Source      map[string]any `json:"source"`
		Destination struct {
			Namespace string `json:"namespace"`
		} `json:"destination"`
	} `json:"spec"`
	Operation *struct{} `json:"operation"`
	Status    struct {
		Sync struct {
			Status     string   `json:"status"`
			Revision   string   `json:"revision"`
			Revisions  []string `json:"revisions"`
			ComparedTo struct {
				Source map[string]any `json:"source"`
			} `json:"comparedTo"`
		} `json:"sync"`
		Health struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"health"`
		ReconciledAt   string      `json:"reconciledAt"`
		Conditions     []Condition `json:"conditions"`
		OperationState struct {
			Phase     string `json:"phase"`
			Message   string `json:"message"`
			StartedAt string `json:"startedAt"`
			Operation struct {
				Sync struct {
					Revision string         `json:"revision"`
					Source   map[string]any `json:"source"`
				} `json:"sync"`
			} `json:"operation"`
			SyncResult struct {
				Revision  string `json:"revision"`
				Resources []struct {
					Kind      string `json:"kind"`
					Namespace string `json:"namespace"`
					Name      string `json:"name"`
					Status    string `json:"status"`
					Message   string `json:"message"`
					HookPhase string `json:"hookPhase"`
					HookType  string `json:"hookType"`
				} `json:"resources"`
			} `json:"syncResult"`
		} `json:"operationState"`
		Resources []struct {
			Group     string `json:"group"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Status    string `json:"status"`
			Health    struct {
				Status  string `json:"status"`
				Message string `json:"message"`
			} `json:"health"`
		} `json:"resources"`
	} `json:"status"`
}

// Read decodes an Application.
func Read(u *unstructured.Unstructured) (Application, error) {
	var w wire
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &w); err != nil {
		return Application{}, fmt.Errorf("read the Application %s: %w", u.GetName(), err)
	}
	a := Application{
		Name: u.GetName(), Namespace: u.GetNamespace(), Labels: u.GetLabels(),
		Deleting: u.GetDeletionTimestamp() != nil,
		Sync:     w.Status.Sync.Status, Health: w.Status.Health.Status, HealthText: w.Status.Health.Message,
		Revision: cmp.Or(w.Status.Sync.Revision, strings.Join(w.Status.Sync.Revisions, ",")), Reconciled: w.Status.ReconciledAt,
		Conditions: w.Status.Conditions, Destination: w.Spec.Destination.Namespace,
	}
	notes := u.GetAnnotations()
	_, a.Refreshing = notes[RefreshAnnotation]
	if n, err := strconv.Atoi(notes[WaveAnnotation]); err == nil { // anything else is 0, as in Argo CD
		a.Wave = n
	}
	if s := w.Status.Sync.ComparedTo.Source; s != nil {
		a.Outdated = !sameSource(s, w.Spec.Source)
	}
	a.Operation = w.operation()
	for _, r := range w.Status.Resources {
		a.Resources = append(a.Resources, Resource{r.Group, r.Kind, r.Namespace, r.Name, r.Status, r.Health.Status, r.Health.Message})
	}
	return a, nil
}

// operation summarises the current or last sync.
func (w *wire) operation() Operation {
	o := w.Status.OperationState
	sync := o.Operation.Sync
	op := Operation{
		Pending: w.Operation != nil, Phase: o.Phase, Message: o.Message, Started: o.StartedAt,
		Revision: cmp.Or(o.SyncResult.Revision, sync.Revision),
		Outdated: sync.Source != nil && !sameSource(sync.Source, w.Spec.Source),
	}
	for _, r := range o.SyncResult.Resources {
		res := Result{r.Kind, r.Namespace, r.Name, r.Message, r.HookType != ""}
		switch {
		case r.Status == "SyncFailed", r.HookPhase == "Failed", r.HookPhase == "Error":
			op.Failed = append(op.Failed, res)
		case res.Hook && r.HookPhase == "Running":
			op.Running = append(op.Running, res)
		}
	}
	return op
}

// sameSource compares two sources. Empty values count as absent, because Argo CD leaves
// them out when it copies a source.
func sameSource(a, b any) bool {
	a, b = prune(a), prune(b)
	return reflect.DeepEqual(a, b)
}

// prune removes empty values; an empty value itself becomes nil.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = prune(e); e != nil {
				out[k] = e
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, prune(e))
		}
		if len(out) > 0 {
			return out
		}
	case string:
		if v != "" {
			return v
		}
	case bool:
		if v {
			return v
		}
	case nil:
	default:
		if s := fmt.Sprint(v); s != "0" {
			return s
		}
	}
	return nil
}

// Waiting describes briefly why a is not done at revision, that is Synced and Healthy
// with no sync in progress. It is empty if a is done. An empty revision matches any.
func (a Application) Waiting(revision string) string {
	switch {
	case a.Deleting:
		return "being deleted"
	case a.Sync == "" || a.Health == "":
		return "not reconciled yet"
	case a.Outdated:
		return "changed, not compared yet"
	case revision != "" && a.Revision != revision:
		return "at revision " + Short(a.Revision)
	case a.Sync != "Synced":
		return a.Sync
	case a.Operation.Pending:
		return "sync not started"
	case a.Operation.Phase == "Running" || a.Operation.Phase == "Terminating":
		return "syncing"
	case a.Operation.Phase == "Failed" || a.Operation.Phase == "Error":
		return "last sync " + strings.ToLower(a.Operation.Phase)
	case a.Health != "Healthy":
		return a.Health
	}
	return ""
}

// Stuck reports whether a sync of a different commit than revision, or of a different
// source than a has now, is still running. It may be waiting for the health of objects
// that only the new state repairs.
func (a Application) Stuck(revision string) bool {
	o := a.Operation
	return o.Phase == "Running" && (o.Revision != "" && o.Revision != revision || o.Outdated)
}

// GivenUp reports whether Argo CD will not retry a's sync by itself: the last one
// failed and none is in progress.
func (a Application) GivenUp() bool {
	return !a.Operation.Pending && (a.Operation.Phase == "Failed" || a.Operation.Phase == "Error")
}

// Short returns the first ten digits of a commit, "none" when there is none.
func Short(revision string) string {
	if revision == "" {
		return "none"
	}
	return revision[:min(len(revision), 10)]
}

// Terminate is the merge patch that ends the sync in progress.
func Terminate() []byte { return []byte(`{"status":{"operationState":{"phase":"Terminating"}}}`) }

// syncPatch returns the merge patch that starts a sync to revision, a commit.
func syncPatch(revision string) []byte {
	return fmt.Appendf(nil, `{"operation":{"initiatedBy":{"username":"slipway"},"retry":{"limit":3},"sync":{"prune":true,"revision":%q}}}`, revision)
}
