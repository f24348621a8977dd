// Package gate tells whether the gates of a platform release are open, and waits for them.
package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// The codes of this package's faults.
const (
	// CodeShut: a gate did not open in time.
	CodeShut fault.Code = "GAT-001"
)

const lookLimit = 10 * time.Second

// Wait waits until the gate is open, up to its deadline. For a plan it looks once. The
// error names the gate, says what was seen last, and what is behind it in the cluster.
// engine is as in Look.
func Wait(ctx context.Context, c *kube.Client, engine string, a platform.Await) error {
	if c.Plan != nil {
		open, seen, err := Look(ctx, c, engine, a)
		if err == nil && !open {
			err = fmt.Errorf("gate %s is shut: %s", a.Describe(), seen)
		}
		return err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(a.Deadline))
	defer cancel()
	err := c.WaitFor(limited, "the gate "+a.Describe(), kube.Poll, func(ctx context.Context) (bool, string, error) {
		return Look(ctx, c, engine, a)
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the step's time is up, or it was interrupted
		return err
	}
	return shut(ctx, c, engine, a, err)
}

// shut is the fault of a gate that did not open: err is what its wait ended with.
func shut(ctx context.Context, c *kube.Client, engine string, a platform.Await, err error) error {
	f := &fault.Fault{Op: "wait for the gate " + a.Describe(), Err: err}
	if late, ok := errors.AsType[*fault.Fault](err); ok && late.Code == kube.CodeWait {
		f.Op, f.Code, f.Class, f.Err = "wait for a gate", CodeShut, fault.Timeout, late.Err // which names it: a summary has room for one of them
		f.Fix = "correct what was seen last, or give the gate more time (deadline in platform.yaml), then run the same command again"
	} else {
		f.Code, f.Class = kube.CodeFailed, fault.Step
		f.Fix = "correct what failed, then run the same command again"
		if cause := errors.Unwrap(err); cause != nil { // the fault says what was waited for
			f.Err = cause
		}
	}
	cause, failed := behind(ctx, c, engine, a)
	if cause != "" {
		f.Err = fmt.Errorf("%w: %s", f.Err, cause)
	}
	if failed {
		f.Class = fault.Step
	}
	return f
}

// Look tells whether the gate is open now, and what was seen. The error is for what
// waiting does not mend. engine is the namespace of Argo CD, where apps are; empty where
// that is not known.
func Look(ctx context.Context, c *kube.Client, engine string, a platform.Await) (open bool, seen string, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	switch {
	case a.Rollout != "":
		return rollout(ctx, c, a.Rollout)
	case a.Job != "":
		return job(ctx, c, a.Job)
	case a.Endpoint != "":
		return endpoint(ctx, c, a.Endpoint)
	case a.HTTP != nil:
		return http(ctx, c, *a.HTTP)
	case a.Condition != nil:
		return condition(ctx, c, *a.Condition)
	case a.CEL != nil:
		return expression(ctx, c, *a.CEL)
	case a.Synced != "":
		return synced(ctx, c, engine, a.Synced)
	}
	return false, "", errors.New("a gate without a condition")
}

func rollout(ctx context.Context, c *kube.Client, ref string) (bool, string, error) {
	o, err := platform.ParseObject(ref)
	if err != nil {
		return false, "", err
	}
	err = readiness.RolledOut(ctx, c, o.Kind, o.Namespace, o.Name)
	if err == nil {
		return true, "it is rolled out", nil
	}
	if kube.Transient(err) || apierrors.IsForbidden(err) {
		return false, "", err
	}
	return false, err.Error(), nil
}

func job(ctx context.Context, c *kube.Client, ref string) (bool, string, error) {
	namespace, name, _ := strings.Cut(ref, "/")
	j, err := c.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	done, failed := readiness.JobEnd(j)
	switch {
	case done:
		return true, "it completed", nil
	case failed != "":
		return false, "", fmt.Errorf("job %s failed: %s", ref, failed)
	}
	return false, fmt.Sprintf("%d active, %d failed", j.Status.Active, j.Status.Failed), nil
}

func endpoint(ctx context.Context, c *kube.Client, ref string) (bool, string, error) {
	namespace, name, port, err := platform.ParseService(ref)
	if err != nil {
		return false, "", err
	}
	s, err := c.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == port })
	if i < 0 {
		return false, fmt.Sprintf("the Service has no port %d", port), nil
	}
	all, err := c.Kubernetes.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + name})
	if err != nil {
		return false, "", err
	}
	ready, known := 0, 0
	for _, slice := range all.Items {
		named := false
		for _, p := range slice.Ports {
			named = named || p.Name != nil && *p.Name == s.Spec.Ports[i].Name
		}
		if !named {
			continue
		}
		for _, e := range slice.Endpoints {
			known++
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready++
			}
		}
	}
	return ready > 0, fmt.Sprintf("%d of %d endpoints are ready", ready, known), nil
}

func condition(ctx context.Context, c *kube.Client, g platform.ConditionGate) (bool, string, error) {
	o, seen, err := object(ctx, c, g.Object)
	if o == nil {
		return false, seen, err
	}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, e := range all {
		m, ok := e.(map[string]any)
		if !ok || m["type"] != g.Type {
			continue
		}
		said := fmt.Sprintf("%s=%v", g.Type, m["status"])
		for _, field := range []string{"reason", "message"} {
			if text, ok := m[field].(string); ok && text != "" {
				said += ", " + text
			}
		}
		// A condition that is about an older object says nothing about this one.
		if of, ok := m["observedGeneration"].(int64); ok && of < o.GetGeneration() {
			return false, said + fmt.Sprintf(", of generation %d, not %d", of, o.GetGeneration()), nil
		}
		return m["status"] == g.Status, said, nil
	}
	return false, "it has no condition " + g.Type, nil
}

func expression(ctx context.Context, c *kube.Client, g platform.CELGate) (bool, string, error) {
	program, err := platform.CompileCEL(g.Expression)
	if err != nil {
		return false, "", fmt.Errorf("the expression %s: %w", g.Expression, err)
	}
	o, seen, err := object(ctx, c, g.Object)
	if o == nil {
		return false, seen, err
	}
	value, _, err := program.ContextEval(ctx, map[string]any{"object": o.Object})
	if err != nil { // a field that is not there yet
		return false, unknown(g.Expression, err), nil
	}
	open, ok := value.Value().(bool)
	if !ok {
		return false, "", fmt.Errorf("the expression %s is of type %s, not true or false", g.Expression, value.Type().TypeName())
	}
	return open, fmt.Sprint(open), nil
}

// unknown says why an expression has no value. CEL's own error quotes values of the object, such
// as those of a Secret: only the name of a field that the expression has itself is taken over.
func unknown(expression string, err error) string {
	if field, ok := strings.CutPrefix(err.Error(), "no such key: "); ok && strings.Contains(expression, field) {
		return "no such key: " + field
	}
	return "the expression has no value: a field is missing, or has another type"
}

// object reads the object of a gate; without one, seen says why.
func object(ctx context.Context, c *kube.Client, ref string) (o *unstructured.Unstructured, seen string, err error) {
	at, err := platform.ParseObject(ref)
	if err != nil {
		return nil, "", err
	}
	api, err := c.Resource(ctx, schema.FromAPIVersionAndKind(at.APIVersion, at.Kind), at.Namespace)
	if meta.IsNoMatchError(err) {
		return nil, "the cluster has no kind " + at.APIVersion + "/" + at.Kind, nil
	}
	if err != nil {
		return nil, "", err
	}
	o, err = api.Get(ctx, at.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "it is not there", nil
	}
	return o, "", err
}

func synced(ctx context.Context, c *kube.Client, namespace, name string) (bool, string, error) {
	_, app, err := applications(ctx, c, namespace, name)
	switch {
	case err != nil:
		return false, "", err
	case app == nil:
		return false, "it is not there", nil
	}
	why := app.Waiting("")
	return why == "", why, nil
}

// applications are those of a namespace, and the one of a name, which is nil where there is none.
func applications(ctx context.Context, c *kube.Client, namespace, name string) (all []argo.Application, named *argo.Application, err error) {
	all, err = argo.List(ctx, c, namespace)
	if at := slices.IndexFunc(all, func(a argo.Application) bool { return a.Name == name }); at >= 0 {
		named = &all[at]
	}
	return all, named, err
}
