package gate

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/diagnosis"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// behind says what keeps a gate shut: why the pods behind it are not ready, or the app is not
// synced, or else what Kubernetes warned of last about its object; empty if nothing was found.
// failed reports that something is known to be wrong, as opposed to a warning, which may be over,
// or to an app that is slow.
func behind(ctx context.Context, c *kube.Client, engine string, a platform.Await) (cause string, failed bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
	defer cancel()
	switch {
	case a.Endpoint != "":
		cause = behindService(ctx, c, a.Endpoint)
	case a.HTTP != nil:
		cause = behindService(ctx, c, a.HTTP.Service)
	case a.Job != "":
		namespace, name, _ := strings.Cut(a.Job, "/")
		cause = readiness.PodCause(ctx, c, namespace, "job-name="+name, name)
	case a.Rollout != "":
		return behindObject(ctx, c, a.Rollout, true)
	case a.Condition != nil:
		return behindObject(ctx, c, a.Condition.Object, false)
	case a.CEL != nil:
		return behindObject(ctx, c, a.CEL.Object, false)
	case a.Synced != "":
		return behindApp(ctx, c, engine, a.Synced)
	}
	return cause, cause != ""
}

func behindService(ctx context.Context, c *kube.Client, ref string) string {
	namespace, name, _, err := platform.ParseService(ref)
	if err != nil {
		return ""
	}
	s, err := c.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(s.Spec.Selector) == 0 {
		return ""
	}
	return readiness.PodCause(ctx, c, namespace, metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}), "")
}

// behindObject is behind for a gate on an object; rolled tells that it waits for its pods.
func behindObject(ctx context.Context, c *kube.Client, ref string, rolled bool) (cause string, failed bool) {
	at, err := platform.ParseObject(ref)
	if err != nil {
		return "", false
	}
	o, _, err := object(ctx, c, ref)
	if err != nil || o == nil {
		return "", false
	}
	if selector := pods(o); selector != "" {
		cause = readiness.PodCause(ctx, c, at.Namespace, selector, at.Name)
	}
	if cause == "" || cause == readiness.NoPods && !rolled { // it may have none by right
		return readiness.Warning(ctx, c, o.GroupVersionKind().GroupKind(), at.Namespace, at.Name), false
	}
	return cause, true
}

// pods selects those that a workload makes; empty for other kinds, whose selectors may be of
// something else.
func pods(o *unstructured.Unstructured) string {
	switch o.GroupVersionKind().Group {
	case "apps", "batch":
	default:
		return ""
	}
	var selector metav1.LabelSelector
	in, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(in, &selector) != nil || len(in) == 0 {
		return ""
	}
	return metav1.FormatLabelSelector(&selector)
}

func behindApp(ctx context.Context, c *kube.Client, engine, name string) (cause string, failed bool) {
	all, app, err := applications(ctx, c, engine, name)
	if err != nil || app == nil {
		return "", false
	}
	return diagnosis.Gather(ctx, c, diagnosis.Scope{Apps: all, App: name}).App(name)
}
