package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// replicasAnnotation is on a workload that is stopped; its value is how many pods it had.
const replicasAnnotation = "slipway.sh/replicas"

// stopped calls do while what uses the data is stopped, and starts it again, whatever happens.
func (w *work) stopped(ctx context.Context, d platform.Data, do func(context.Context) error) (err error) {
	if len(d.Users) == 0 {
		return do(ctx)
	}
	defer func() { err = errors.Join(err, w.startUsers(ctx, d)) }()
	if err := w.stopUsers(ctx, d); err != nil {
		return err
	}
	return do(ctx)
}

// users calls do with each workload that uses the data of these names.
func (w *work) users(data []string, do func(u platform.User) error) error {
	for _, name := range data {
		d, err := w.dataNamed(name)
		if err != nil {
			return err
		}
		for _, text := range d.Users {
			u, err := platform.ParseUser(text)
			if err == nil {
				err = do(u)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) stopUsers(ctx context.Context, d platform.Data) error {
	return w.users([]string{d.Name}, func(u platform.User) error {
		if err := w.stop(ctx, u); err != nil {
			return w.badUsers("stop "+u.String(), err)
		}
		return nil
	})
}

// startUsers starts them again, also after ctx has ended.
func (w *work) startUsers(ctx context.Context, d platform.Data) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	return w.start(ctx, []string{d.Name})
}

// stoppable returns a fault if Argo CD would start the users of data again.
func (w *work) stoppable(ctx context.Context, data []string) error {
	apps, err := w.applicationsOf(ctx, data)
	for i := 0; i < len(apps) && err == nil; i++ {
		_, err = w.toPause(ctx, apps[i])
	}
	if err != nil {
		return w.badUsers("stop who uses "+strings.Join(data, ", "), err)
	}
	return nil
}

// applicationsOf are the Applications that own the users of data.
func (w *work) applicationsOf(ctx context.Context, data []string) (out []kube.Member, _ error) {
	err := w.users(data, func(u platform.User) error {
		live, err := w.workload(ctx, u)
		if err != nil || live == nil { // what is not there uses nothing
			return err
		}
		if app := w.applicationOf(live); app != nil {
			out = append(out, *app)
		}
		return nil
	})
	return out, err
}

// stoppedInPlace is stopped if the style is in-place; otherwise it only calls do.
func (w *work) stoppedInPlace(ctx context.Context, style string, d platform.Data, do func(context.Context) error) error {
	if style != contract.InPlace {
		return do(ctx)
	}
	return w.stopped(ctx, d, do)
}

func (w *work) badUsers(op string, err error) error {
	return &fault.Fault{Code: CodeMigration, Class: step.ClassOf(err), Op: op, Fix: "correct the cause, " + w.next, Err: err}
}

// stop scales a workload to nothing and waits until its pods are gone. Before that it makes Argo CD
// leave the workload alone, if Argo CD owns it.
func (w *work) stop(ctx context.Context, u platform.User) error {
	live, err := w.workload(ctx, u)
	if err != nil || live == nil { // what is not there uses nothing
		return err
	}
	if app := w.applicationOf(live); app != nil {
		o, err := w.toPause(ctx, *app)
		if err == nil && o != nil {
			err = w.annotate(ctx, o, map[string]any{argo.SkipReconcile: "true", argo.StoppedAnnotation: "true"})
		}
		if err != nil {
			return err
		}
	}
	had := live.GetAnnotations()[replicasAnnotation]
	if had == "" {
		replicas, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
		if !found {
			replicas = 1
		}
		had = strconv.FormatInt(replicas, 10)
		if err := w.scale(ctx, live, 0, had); err != nil {
			return err
		}
	}
	w.env.Progress("%s is stopped while its data is changed", u)
	return w.client.WaitFor(ctx, u.String()+" to have no pods", kube.Poll, func(ctx context.Context) (bool, string, error) {
		o, err := w.workload(ctx, u)
		if err != nil || o == nil {
			return o == nil, "", err
		}
		if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); n > 0 {
			// A sync that Argo CD had begun before it was told to leave it alone.
			w.env.Progress("%s was started meanwhile, and is stopped again", u)
			return false, fmt.Sprintf("%d pods", n), w.scale(ctx, o, 0, had)
		}
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		pods, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
		if seen < o.GetGeneration() || pods > 0 {
			return false, fmt.Sprintf("%d pods", pods), nil
		}
		ending, err := w.podsOf(ctx, o) // which that does not count
		return ending == 0, fmt.Sprintf("%d pods that end", ending), err
	})
}

// podsOf is how many pods of a workload are there and have not ended.
func (w *work) podsOf(ctx context.Context, workload *unstructured.Unstructured) (int, error) {
	pods, err := w.client.Kubernetes.CoreV1().Pods(workload.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range pods.Items {
		kind, name := readiness.Owner(&p)
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if kind == workload.GetKind() && name == workload.GetName() && !ended {
			n++
		}
	}
	return n, nil
}

// toPause returns an Application that Argo CD has to leave alone; nil if it does so already. It fails
// if an ApplicationSet would take that annotation off again, as Argo CD's controller does with
// annotations that the set does not preserve: Argo CD would start the users of data meanwhile.
func (w *work) toPause(ctx context.Context, app kube.Member) (*unstructured.Unstructured, error) {
	live, err := w.client.Live(ctx, app)
	if err != nil || live == nil {
		return nil, err
	}
	if a := live.GetAnnotations(); a[argo.SkipReconcile] == "true" && a[argo.StoppedAnnotation] == "" {
		return nil, nil
	}
	owner := metav1.GetControllerOf(live)
	if owner == nil || owner.Kind != "ApplicationSet" {
		return live, nil
	}
	set, err := w.client.Live(ctx, kube.Member{Kind: argo.ApplicationSets().GroupVersion().WithKind("ApplicationSet"), Namespace: app.Namespace, Name: owner.Name})
	if err != nil || set == nil {
		return live, err
	}
	kept, _, err := unstructured.NestedStringSlice(set.Object, "spec", "preservedFields", "annotations")
	if err == nil && !slices.Contains(kept, argo.SkipReconcile) {
		err = fmt.Errorf("ApplicationSet %s does not let Application %s be left alone: it lacks %s in spec.preservedFields.annotations", owner.Name, app.Name, argo.SkipReconcile)
	}
	return live, err
}

// start gives the users of data back the pods that they had when they were stopped, and to
// Argo CD what it was told to leave alone. It does nothing where they are not stopped, and
// leaves those alone that use data of w.held, too.
func (w *work) start(ctx context.Context, data []string) error {
	err := w.users(data, func(u platform.User) error {
		if w.holds(u.String()) {
			return nil
		}
		if err := w.startOne(ctx, u); err != nil {
			return w.badUsers("start "+u.String(), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.reconcileAgain(ctx)
}

// holds reports whether a user is one of data whose users stay stopped.
func (w *work) holds(user string) bool {
	return slices.ContainsFunc(w.held, func(name string) bool {
		d, err := w.dataNamed(name)
		return err == nil && slices.Contains(d.Users, user)
	})
}

func (w *work) startOne(ctx context.Context, u platform.User) error {
	live, err := w.workload(ctx, u)
	if err != nil || live == nil {
		return err
	}
	had := live.GetAnnotations()[replicasAnnotation]
	if had == "" {
		return nil
	}
	replicas, err := strconv.ParseInt(had, 10, 32)
	if err != nil || replicas < 0 { // somebody has changed it
		replicas = 1
	}
	if err := w.scale(ctx, live, replicas, ""); err != nil {
		return err
	}
	w.env.Progress("%s runs again", u)
	return nil
}

// reconcileAgain has Argo CD look again at the Applications that it was told to leave alone.
func (w *work) reconcileAgain(ctx context.Context) error {
	if w.release.Engine() == nil {
		return nil
	}
	apps, err := w.client.List(ctx, argo.Applications(), "", "")
	if err != nil {
		return w.badUsers("have Argo CD reconcile again", err)
	}
	held, err := w.applicationsOf(ctx, w.held)
	if err != nil {
		return w.badUsers("have Argo CD reconcile again", err)
	}
	for _, a := range apps {
		if a.GetAnnotations()[argo.StoppedAnnotation] == "" || slices.ContainsFunc(held, kube.MemberOf(&a).Same) {
			continue
		}
		if err := w.annotate(ctx, &a, map[string]any{argo.SkipReconcile: nil, argo.StoppedAnnotation: nil}); err != nil {
			return w.badUsers("have Argo CD reconcile "+a.GetName()+" again", err)
		}
	}
	return nil
}

// workload is one as it is in the cluster; nil if it is not there.
func (w *work) workload(ctx context.Context, u platform.User) (*unstructured.Unstructured, error) {
	return w.client.Live(ctx, kube.Member{Kind: appsv1.SchemeGroupVersion.WithKind(u.Kind), Namespace: u.Namespace, Name: u.Name})
}

// scale sets how many pods a workload has, and notes how many it had; empty: that is no longer
// known.
func (w *work) scale(ctx context.Context, o *unstructured.Unstructured, replicas int64, had string) error {
	annotations := map[string]any{replicasAnnotation: nil}
	if had != "" {
		annotations[replicasAnnotation] = had
	}
	return w.client.PatchObject(ctx, "scale "+kube.MemberOf(o).String(), o, map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"replicas": replicas}})
}

// applicationOf is the Application of Argo CD that owns an object; nil if none does.
func (w *work) applicationOf(o *unstructured.Unstructured) *kube.Member {
	owner, _, is := strings.Cut(o.GetAnnotations()[kube.TrackingID], ":")
	engine := w.release.Engine()
	if !is || engine == nil {
		return nil
	}
	app := argo.Member(engine.Namespace, owner)
	if namespace, name, elsewhere := strings.Cut(owner, "_"); elsewhere {
		app = argo.Member(namespace, name)
	}
	return &app
}

func (w *work) annotate(ctx context.Context, o *unstructured.Unstructured, annotations map[string]any) error {
	return w.client.PatchObject(ctx, "annotate "+kube.MemberOf(o).String(), o, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}
