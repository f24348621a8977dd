package tests

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// runAnnotation names the run that made an object.
const runAnnotation = "slipway.sh/run"

// removeLimit is how long removing a test's objects may take, also after its deadline.
const removeLimit = time.Minute

// mark is what the objects of a test or workload are known by: a label that has its name.
type mark struct{ label, name string }

func testMark(name string) mark     { return mark{"slipway.sh/test", name} }
func checkMark(name string) mark    { return mark{"slipway.sh/check", name} }
func workloadMark(name string) mark { return mark{"slipway.sh/workload", name} }

// list is the note that lists the objects.
func (m mark) list() string { return m.name + "-" + path.Base(m.label) }

// put marks an object, and the claims that it will make.
func (m mark) put(o *unstructured.Unstructured, deployment string) {
	own := labels.Merge(kube.Labels(deployment), labels.Set{m.label: m.name})
	o.SetLabels(labels.Merge(o.GetLabels(), own))
	claims, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "volumeClaimTemplates")
	list, _ := claims.([]any)
	for _, c := range list {
		if claim, ok := c.(map[string]any); ok {
			for key, value := range own {
				_ = unstructured.SetNestedField(claim, value, "metadata", "labels", key) // the API server says what is wrong with it
			}
		}
	}
}

// on reports whether an object is one of the mark's.
func (m mark) on(o *unstructured.Unstructured, deployment string) bool {
	return kube.DeploymentOf(o.GetLabels()) == deployment && o.GetLabels()[m.label] == m.name && kube.WroteTo(o)
}

// theirs is the fault of an object that is there and not the trial's.
func (t *trial) theirs(o *unstructured.Unstructured) error {
	return &fault.Fault{
		Code: kube.CodeForeign, Class: fault.Step, Op: "make what the " + t.files.Name + " needs",
		Err: fmt.Errorf("%s exists and is not its own; it was not changed", kube.MemberOf(o)),
		Fix: "rename the object in the platform release, or remove the existing one; then run it again: slipway test",
	}
}

// make makes objects that must not be there.
func (t *trial) make(ctx context.Context, objs []*unstructured.Unstructured) error {
	for _, o := range objs {
		o.SetAnnotations(labels.Merge(o.GetAnnotations(), labels.Set{runAnnotation: t.env.Run}))
	}
	not, err := t.client.Create(ctx, objs, func(live *unstructured.Unstructured) bool {
		return t.mark.on(live, t.env.Deployment) && live.GetAnnotations()[runAnnotation] == t.env.Run
	})
	switch {
	case err == nil:
		return nil
	case not != nil && apierrors.IsAlreadyExists(err):
		return t.theirs(not)
	}
	return t.refused(ctx, err)
}

// refused is err, as a fault of the trial's files if the API server rejects them.
func (t *trial) refused(ctx context.Context, err error) error {
	if _, coded := errors.AsType[*fault.Fault](err); coded && !errors.Is(err, &fault.Fault{Code: kube.CodeRejected}) || ctx.Err() != nil || kube.Transient(err) {
		return err
	}
	return t.unusable(err)
}

// remover removes the objects that a mark is on, of those that its list names.
type remover struct {
	client *kube.Client
	env    *step.Env
	mark   mark
}

// remove removes all of them, with their data, and then the list. It returns what was there.
func (r remover) remove(ctx context.Context) ([]string, error) {
	members, err := r.client.Members(ctx, r.mark.list())
	if err != nil {
		return nil, err
	}
	var removed []string
	var going []kube.Member
	for _, m := range members {
		asked, err := r.delete(ctx, m)
		if err != nil {
			return removed, err
		}
		if asked {
			going, removed = append(going, m), append(removed, m.String())
		}
	}
	for _, m := range going {
		if err := r.gone(ctx, m); err != nil {
			return removed, err
		}
	}
	for _, m := range members {
		if !m.MakesClaims() { // these outlast it
			continue
		}
		selector := fmt.Sprintf("%s=%s,%s=%s", kube.DeploymentLabel, r.env.Deployment, r.mark.label, r.mark.name)
		claims, err := r.client.DeleteAll(ctx, core("persistentvolumeclaims"), m.Namespace, selector)
		if err != nil {
			return removed, err
		}
		for _, c := range claims {
			removed = append(removed, "PersistentVolumeClaim "+c)
		}
	}
	return removed, r.client.Delete(ctx, core("secrets"), kube.SystemNamespace, r.mark.list(), metav1.DeletePropagationBackground)
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// gone waits until an object that was deleted is gone, or somebody has made another one.
func (r remover) gone(ctx context.Context, m kube.Member) error {
	return r.client.WaitFor(ctx, m.String()+" to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
		live, err := r.client.Live(ctx, m)
		if err != nil || live == nil || !r.mark.on(live, r.env.Deployment) {
			return err == nil, "", err
		}
		return false, kube.Left([]unstructured.Unstructured{*live}), nil
	})
}

// delete asks for the deletion of an object that the mark is on, after what it owns.
func (r remover) delete(ctx context.Context, m kube.Member) (asked bool, err error) {
	live, err := r.client.Live(ctx, m)
	if err != nil || live == nil || !r.mark.on(live, r.env.Deployment) {
		return false, err
	}
	return true, r.client.DeleteObject(ctx, live, metav1.DeletePropagationForeground)
}
