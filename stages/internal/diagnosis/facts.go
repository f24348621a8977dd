package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// Facts are what was read from a cluster. A nil list could not be read, as opposed to an
// empty one. They must not be changed once a method has been called, and are not safe
// for concurrent use.
type Facts struct {
	Scope   Scope
	Now     time.Time
	Apps    []argo.Application
	Pods    []corev1.Pod
	Nodes   []corev1.Node
	Claims  []corev1.PersistentVolumeClaim
	Classes []storagev1.StorageClass
	Jobs    []batchv1.Job
	Events  []corev1.Event
	// Logs are the last lines of containers that are in trouble, by
	// "namespace/pod".
	Logs map[string][]string
	// Down is why nothing could be read at all; empty otherwise.
	Down string
	Gaps []string // what could not be read, each with the reason

	pulls  []corev1.Event // of images that are being pulled
	sorted []*finding     // nil until ranked
	newest map[object]time.Time
}

// maxItems is how much of a list is read: those of very large clusters only in part.
const maxItems = 5000

// maxLogs is how many containers' logs are read, and logLines how many lines of
// each.
const (
	maxLogs  = 5
	logLines = 20
)

// Gather reads the facts, each part independently, within twenty seconds even if ctx
// lasts longer.
func Gather(ctx context.Context, client *kube.Client, scope Scope) *Facts {
	f := &Facts{Scope: scope, Now: time.Now().UTC(), Apps: scope.Apps, Logs: map[string][]string{}}
	f.lists(ctx, client)
	if f.Down != "" {
		if scope.Health != "" {
			limited, cancel := context.WithTimeout(ctx, healthLimit)
			defer cancel()
			_, seen, err := readiness.Node(limited, client, scope.Health)
			if err != nil {
				seen = fmt.Sprintf("its node does not answer at %s either: %s", scope.Health, reason(err))
			}
			f.Down += "; " + seen
		}
		return f
	}
	if scope.Hide != nil {
		if err := client.HideSecrets(ctx, scope.Deployment, scope.Hide); err != nil {
			f.gap("the Secrets, without which no text of the cluster is shown", err)
			f.Apps, f.Pods, f.Jobs, f.Events = nil, nil, nil, nil
			return f
		}
	}
	f.details(ctx, client)
	return f
}

type part struct {
	name string
	read func(ctx context.Context) error
}

func (f *Facts) lists(ctx context.Context, client *kube.Client) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	parts := f.parts(client)
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = p.read(ctx) })
	}
	wg.Wait()
	f.Events = append(f.Events, f.pulls...)
	responds := false
	for i, p := range parts {
		if errs[i] != nil {
			f.gap(p.name, errs[i])
		}
		// A rejected request shows that the API responds, unlike a transient error.
		responds = responds || !kube.Transient(errs[i])
	}
	if !responds {
		at := "the API server"
		if client.Config != nil {
			at += " at " + client.Endpoint()
		}
		f.Down, f.Gaps = at+" does not answer: "+reason(errs[0]), []string{"the cluster"}
	}
}

func (f *Facts) gap(what string, err error) {
	f.Gaps = append(f.Gaps, f.Scope.clean(what+": "+reason(err)))
}

// reason returns the text of err without the request.
func reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return readiness.OneLine(err.Error())
}

func (f *Facts) parts(client *kube.Client) []part {
	core := client.Kubernetes.CoreV1()
	events := func(field, value string) func(context.Context, metav1.ListOptions) (*corev1.EventList, error) {
		return func(ctx context.Context, o metav1.ListOptions) (*corev1.EventList, error) {
			o.FieldSelector = fields.OneTermEqualSelector(field, value).String()
			return core.Events("").List(ctx, o)
		}
	}
	warnings := items(&f.Events, events("type", corev1.EventTypeWarning), func(l *corev1.EventList) []corev1.Event {
		return slices.DeleteFunc(l.Items, func(e corev1.Event) bool { return e.Type != corev1.EventTypeWarning })
	})
	pulls := items(&f.pulls, events("reason", pulling), func(l *corev1.EventList) []corev1.Event {
		return slices.DeleteFunc(l.Items, func(e corev1.Event) bool { return e.Reason != pulling })
	})
	parts := []part{
		{"pods", items(&f.Pods, core.Pods("").List, func(l *corev1.PodList) []corev1.Pod { return l.Items })},
		{"nodes", items(&f.Nodes, core.Nodes().List, func(l *corev1.NodeList) []corev1.Node { return l.Items })},
		{"claims", items(&f.Claims, core.PersistentVolumeClaims("").List,
			func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items })},
		{"storage classes", items(&f.Classes, client.Kubernetes.StorageV1().StorageClasses().List,
			func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })},
		{"jobs", items(&f.Jobs, client.Kubernetes.BatchV1().Jobs("").List, func(l *batchv1.JobList) []batchv1.Job { return l.Items })},
		{"events", func(ctx context.Context) error { return cmp.Or(warnings(ctx), pulls(ctx)) }},
	}
	if f.Apps == nil {
		parts = append(parts, part{"applications", func(ctx context.Context) error { return f.readApps(ctx, client) }})
	}
	return parts
}

// items returns what reads a list into all.
func items[L metav1.ListInterface, T any](all *[]T, list func(context.Context, metav1.ListOptions) (L, error), of func(L) []T) func(context.Context) error {
	return func(ctx context.Context) error {
		found, err := list(ctx, metav1.ListOptions{Limit: maxItems})
		if err != nil {
			return err
		}
		*all = append([]T{}, of(found)...) // not nil even if empty
		if found.GetContinue() != "" {
			return fmt.Errorf("there are more than %d", maxItems)
		}
		return nil
	}
}

// readApps reads the Applications; a cluster without Argo CD has none.
func (f *Facts) readApps(ctx context.Context, client *kube.Client) error {
	var list []unstructured.Unstructured
	err := items(&list, client.Dynamic.Resource(argo.Applications()).Namespace(f.Scope.Argo).List,
		func(l *unstructured.UnstructuredList) []unstructured.Unstructured { return l.Items })(ctx)
	if err != nil && len(list) == 0 && !apierrors.IsNotFound(err) {
		return err
	}
	f.Apps = []argo.Application{}
	for i := range list {
		f.Apps = append(f.Apps, argo.Read(&list[i]))
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// pulling is the reason of events that say that an image is being pulled.
const pulling = "Pulling"

// details reads the logs of containers in trouble.
func (f *Facts) details(ctx context.Context, client *kube.Client) {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	var top []*finding
	for _, x := range f.ranked() {
		if x.pod != nil && len(top) < maxLogs {
			top = append(top, x)
		}
	}
	logs, errs := make([][]string, len(top)), make([]error, len(top))
	var wg sync.WaitGroup
	for i, x := range top {
		wg.Go(func() { logs[i], errs[i] = readiness.LastLines(ctx, client, x.pod, x.trouble, logLines) })
	}
	wg.Wait()
	f.sorted = nil
	for i, x := range top {
		if len(logs[i]) > 0 {
			f.Logs[x.pod.Namespace+"/"+x.pod.Name] = logs[i]
		} else if errs[i] != nil {
			f.gap("log of "+x.object.String(), errs[i])
		}
	}
}
