// Package argo reads Argo CD's Applications and tells how far they are and why
// they are not further. It works on objects that were read before and does no
// I/O.
package argo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Namespace is where Argo CD is.
const Namespace = "argocd"

// Applications is the resource of the kind Application.
func Applications() schema.GroupVersionResource { return resource("applications") }

// ApplicationSets is the resource of the kind ApplicationSet.
func ApplicationSets() schema.GroupVersionResource { return resource("applicationsets") }

// AppProjects is the resource of the kind AppProject.
func AppProjects() schema.GroupVersionResource { return resource("appprojects") }

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: name}
}

// Annotations of Argo CD.
const (
	WaveAnnotation    = "argocd.argoproj.io/sync-wave"
	RefreshAnnotation = "argocd.argoproj.io/refresh"
	CascadeFinalizer  = "resources-finalizer.argocd.argoproj.io"
)

// Application is what the steps need to know of an Application.
type Application struct {
	Name      string
	Namespace string
	Wave      int
	Created   time.Time
	Deleting  bool

	Sync        string // "Synced", "OutOfSync", "Unknown"; empty before the first reconciliation
	Health      string // "Healthy", "Progressing", …; empty before the first reconciliation
	HealthText  string
	Revision    string // commit that the desired state was read from
	Refreshing  bool   // a refresh was asked for and has not been done
	Reconciled  string // RFC 3339, seconds; when the controller last compared it
	Outdated    bool   // the last comparison was made with another source than the present one
	Conditions  []Condition
	Operation   Operation
	Resources   []Resource
	Destination string // namespace
}

// Condition is a warning or an error that Argo CD keeps on an Application.
type Condition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Since   string `json:"lastTransitionTime"` // RFC 3339
}

// Operation is the last or the current sync.
type Operation struct {
	Pending  bool   // asked for, not begun
	Phase    string // "Running", "Succeeded", "Failed", "Error", "Terminating"; empty when there was none
	Message  string
	Revision string // commit that it syncs
	Started  string // RFC 3339
	Outdated bool   // it syncs another source than the present one
	Failed   []Result
	Running  []Result // hooks under way
}

// Result is an object that a sync has not got done.
type Result struct {
	Kind, Namespace, Name string
	Message               string
	Hook                  bool
}

// Resource is an object that an Application owns.
type Resource struct {
	Group, Kind, Namespace, Name string
	Status                       string // "Synced", "OutOfSync"
	Health                       string // empty when the kind has no health
	Message                      string // of its health
}

// wire is the part of the custom resource that is read.
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
			ComparedTo *struct {
				Source map[string]any `json:"source"`
			} `json:"comparedTo"`
		} `json:"sync"`
		Health struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"health"`
		ReconciledAt   string      `json:"reconciledAt"`
		Conditions     []Condition `json:"conditions"`
		OperationState *struct {
			Phase     string `json:"phase"`
			Message   string `json:"message"`
			StartedAt string `json:"startedAt"`
			Operation struct {
				Sync *struct {
					Revision string         `json:"revision"`
					Source   map[string]any `json:"source"`
				} `json:"sync"`
			} `json:"operation"`
			SyncResult *struct {
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
			Health    *struct {
				Status  string `json:"status"`
				Message string `json:"message"`
			} `json:"health"`
		} `json:"resources"`
	} `json:"status"`
}

// Read takes an Application out of an object.
func Read(u *unstructured.Unstructured) (Application, error) {
	var w wire
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &w); err != nil {
		return Application{}, fmt.Errorf("read the Application %s: %w", u.GetName(), err)
	}
	a := Application{
		Name: u.GetName(), Namespace: u.GetNamespace(), Created: u.GetCreationTimestamp().Time,
		Deleting: u.GetDeletionTimestamp() != nil,
		Sync:     w.Status.Sync.Status, Health: w.Status.Health.Status, HealthText: w.Status.Health.Message,
		Revision: w.Status.Sync.Revision, Reconciled: w.Status.ReconciledAt,
		Conditions: w.Status.Conditions, Destination: w.Spec.Destination.Namespace,
	}
	if a.Revision == "" {
		a.Revision = strings.Join(w.Status.Sync.Revisions, ",")
	}
	notes := u.GetAnnotations()
	_, a.Refreshing = notes[RefreshAnnotation]
	if n, err := strconv.Atoi(notes[WaveAnnotation]); err == nil { // Argo CD takes anything else for 0 too
		a.Wave = n
	}
	if c := w.Status.Sync.ComparedTo; c != nil && c.Source != nil {
		a.Outdated = !sameSource(c.Source, w.Spec.Source)
	}
	a.Operation = w.operation()
	for _, r := range w.Status.Resources {
		res := Resource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Status: r.Status}
		if r.Health != nil {
			res.Health, res.Message = r.Health.Status, r.Health.Message
		}
		a.Resources = append(a.Resources, res)
	}
	return a, nil
}

// operation sums the present or last sync up.
func (w *wire) operation() Operation {
	op := Operation{Pending: w.Operation != nil}
	o := w.Status.OperationState
	if o == nil {
		return op
	}
	op.Phase, op.Message, op.Started = o.Phase, o.Message, o.StartedAt
	if s := o.Operation.Sync; s != nil {
		op.Revision = s.Revision
		op.Outdated = s.Source != nil && !sameSource(s.Source, w.Spec.Source)
	}
	if o.SyncResult == nil {
		return op
	}
	if o.SyncResult.Revision != "" {
		op.Revision = o.SyncResult.Revision
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

// sameSource compares two sources, taking what is empty for not there: Argo CD
// leaves it out when it copies a source.
func sameSource(a, b any) bool {
	a, b = prune(a), prune(b)
	return reflect.DeepEqual(a, b)
}

// prune removes empty values; what is empty itself becomes nil.
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

// Waiting tells in a few words what keeps a from being done at revision: Synced
// and Healthy there with no sync under way. Empty when nothing does. An empty
// revision stands for any.
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
		return "sync not begun"
	case a.Operation.Phase == "Running" || a.Operation.Phase == "Terminating":
		return "syncing"
	case a.Operation.Phase == "Failed" || a.Operation.Phase == "Error":
		return "last sync " + strings.ToLower(a.Operation.Phase)
	case a.Health != "Healthy":
		return a.Health
	}
	return ""
}

// Stuck tells whether a's sync is for another commit than revision, or another
// source than a has now, and still running: it would wait for the health of
// what the new state repairs.
func (a Application) Stuck(revision string) bool {
	o := a.Operation
	return o.Phase == "Running" && (o.Revision != "" && o.Revision != revision || o.Outdated)
}

// GivenUp tells whether Argo CD will not try a's sync again by itself: the last
// one failed and none is under way.
func (a Application) GivenUp() bool {
	return !a.Operation.Pending && (a.Operation.Phase == "Failed" || a.Operation.Phase == "Error")
}

// Short is the first ten digits of a commit, "none" when there is none.
func Short(revision string) string {
	if revision == "" {
		return "none"
	}
	return revision[:min(len(revision), 10)]
}

// RefreshPatch is the merge patch that makes the controller look at the branch.
func RefreshPatch() []byte {
	return mustJSON(map[string]any{"metadata": map[string]any{"annotations": map[string]any{RefreshAnnotation: "normal"}}})
}

// TerminatePatch is the merge patch that ends the sync under way.
func TerminatePatch() []byte {
	return mustJSON(map[string]any{"status": map[string]any{"operationState": map[string]any{"phase": "Terminating"}}})
}

// SyncPatch is the merge patch that starts a sync to revision.
func SyncPatch(revision string) []byte {
	return mustJSON(map[string]any{"operation": map[string]any{
		"initiatedBy": map[string]any{"username": "slipway"},
		"sync":        map[string]any{"revision": revision, "prune": true},
		"retry":       map[string]any{"limit": 3},
	}})
}

// mustJSON encodes what this file builds from strings and maps, which cannot
// fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
