// Package argo interprets Argo CD's Applications: their progress, and what they are
// waiting for.
package argo

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
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
	StoppedAnnotation = "slipway.sh/stopped" // of an Application that is left alone while Slipway changes data

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
	Type    string
	Message string
	Since   string // RFC 3339
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

// Read reads an Application. A field of another type than Argo CD's counts as absent.
func Read(u *unstructured.Unstructured) Application {
	source := u.Object["spec"]
	if spec, ok := source.(map[string]any); ok {
		source = spec["source"]
	}
	other := func(path ...string) bool { // than the source that it has now
		s, found, _ := unstructured.NestedMap(u.Object, path...)
		return found && !sameSource(s, source)
	}
	of := func(path ...string) string { return text(u.Object, path...) }
	revisions, _, _ := unstructured.NestedStringSlice(u.Object, "status", "sync", "revisions")
	_, refreshing := u.GetAnnotations()[RefreshAnnotation]
	a := Application{
		Name: u.GetName(), Namespace: u.GetNamespace(), Labels: u.GetLabels(),
		Deleting: u.GetDeletionTimestamp() != nil, Refreshing: refreshing,
		Sync: of("status", "sync", "status"), Health: of("status", "health", "status"), HealthText: of("status", "health", "message"),
		Revision: cmp.Or(of("status", "sync", "revision"), strings.Join(revisions, ",")), Reconciled: of("status", "reconciledAt"),
		Outdated: other("status", "sync", "comparedTo", "source"), Destination: of("spec", "destination", "namespace"),
		Operation: Operation{
			Pending: u.Object["operation"] != nil, Phase: of("status", "operationState", "phase"), Message: of("status", "operationState", "message"),
			Started:  of("status", "operationState", "startedAt"),
			Revision: cmp.Or(of("status", "operationState", "syncResult", "revision"), of("status", "operationState", "operation", "sync", "revision")),
			Outdated: other("status", "operationState", "operation", "sync", "source"),
		},
	}
	if n, err := strconv.Atoi(u.GetAnnotations()[WaveAnnotation]); err == nil { // anything else is 0, as in Argo CD
		a.Wave = n
	}
	for _, c := range kube.Entries(u, "status", "conditions") {
		a.Conditions = append(a.Conditions, Condition{text(c, "type"), text(c, "message"), text(c, "lastTransitionTime")})
	}
	for _, r := range kube.Entries(u, "status", "operationState", "syncResult", "resources") {
		res, phase := Result{text(r, "kind"), text(r, "namespace"), text(r, "name"), text(r, "message"), text(r, "hookType") != ""}, text(r, "hookPhase")
		switch {
		case text(r, "status") == "SyncFailed", phase == "Failed", phase == "Error":
			a.Operation.Failed = append(a.Operation.Failed, res)
		case res.Hook && phase == "Running":
			a.Operation.Running = append(a.Operation.Running, res)
		}
	}
	for _, r := range kube.Entries(u, "status", "resources") {
		a.Resources = append(a.Resources, Resource{
			text(r, "group"), text(r, "kind"), text(r, "namespace"), text(r, "name"), text(r, "status"), text(r, "health", "status"), text(r, "health", "message"),
		})
	}
	return a
}

func text(o map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(o, path...)
	return s
}

// Get reads the Application of that name as it is now.
func Get(ctx context.Context, c *kube.Client, namespace, name string) (Application, error) {
	o, err := c.Dynamic.Resource(Applications()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Application{}, err
	}
	return Read(o), nil
}

// List reads the Applications of a namespace; "" means all.
func List(ctx context.Context, c *kube.Client, namespace string) ([]Application, error) {
	objs, err := c.List(ctx, Applications(), namespace, "")
	out := make([]Application, 0, len(objs))
	for i := range objs {
		out = append(out, Read(&objs[i]))
	}
	return out, err
}

// sameSource compares two sources. Empty values count as absent, because Argo CD leaves
// them out when it copies a source.
func sameSource(a, b any) bool {
	a, b = prune(a), prune(b)
	return reflect.DeepEqual(a, b)
}

// prune removes empty values; an empty value itself becomes nil. Numbers are compared as text: their
// types differ with what they were read from.
func prune(v any) any {
	switch all := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range all {
			if e = prune(e); e != nil {
				out[k] = e
			}
		}
		v = out
	case []any:
		out := make([]any, len(all))
		for i, e := range all {
			out[i] = prune(e)
		}
		v = out
	}
	switch is := reflect.ValueOf(v); {
	case v == nil, is.IsZero(), (is.Kind() == reflect.Map || is.Kind() == reflect.Slice) && is.Len() == 0:
		return nil
	case is.CanInt() || is.CanFloat():
		return fmt.Sprint(v)
	}
	return v
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

func syncPatch(revision string) []byte {
	return fmt.Appendf(nil, `{"operation":{"initiatedBy":{"username":"slipway"},"retry":{"limit":3},"sync":{"prune":true,"revision":%q}}}`, revision)
}
