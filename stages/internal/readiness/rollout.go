package readiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// WaitRollout waits until every pod of a Deployment, StatefulSet or DaemonSet has the
// current template and is available. What is seen on the way, from ten seconds on, and the
// error say what keeps the pods from it.
func WaitRollout(ctx context.Context, c *kube.Client, kind, namespace, name string) error {
	var last rollout
	why, looked := "", time.Now()
	what := fmt.Sprintf("%s %s/%s to be rolled out", kind, namespace, name)
	err := c.WaitFor(ctx, what, kube.Poll, func(ctx context.Context) (bool, string, error) {
		r, err := readRollout(ctx, c, kind, namespace, name)
		if err != nil {
			return false, "", err
		}
		if last = r; r.done() {
			young, err := young(ctx, c, namespace, r)
			return err == nil && young == "", young, err
		}
		if kind == "StatefulSet" {
			replaced, err := replaceUnready(ctx, c, namespace, name)
			if err != nil {
				return false, "", err
			}
			if replaced {
				why = "" // it was about that pod
			}
		}
		if time.Since(looked) >= lookEvery {
			why, looked = hindrance(ctx, c, namespace, name, r), time.Now()
		}
		return false, r.seen(why), nil
	})
	return kube.WithCause(ctx, err, func(ctx context.Context) string {
		if why != "" && strings.Contains(err.Error(), why) { // told already
			return ""
		}
		return hindrance(ctx, c, namespace, name, last)
	})
}

// hindrance says what keeps the pods of a rollout from being available; "" when that is not
// known, or when the workload itself says why there is no pod.
func hindrance(ctx context.Context, c *kube.Client, namespace, name string, r rollout) string {
	if r.selector == nil {
		return ""
	}
	cause := PodCause(ctx, c, namespace, metav1.FormatLabelSelector(r.selector), name)
	if r.failed != "" && strings.HasPrefix(cause, NoPods) {
		return ""
	}
	return cause
}

// WaitRollouts is WaitRollout for every Deployment, StatefulSet and DaemonSet among objs,
// all at the same time. It returns their names, "Deployment/web", sorted; the error
// names every workload that does not come up.
func WaitRollouts(ctx context.Context, c *kube.Client, objs []*unstructured.Unstructured) ([]string, error) {
	var names []string
	errs := make([]error, len(objs))
	var wg sync.WaitGroup
	for i, o := range objs {
		switch o.GetKind() {
		case "Deployment", "StatefulSet", "DaemonSet":
			names = append(names, o.GetKind()+"/"+o.GetName())
			wg.Go(func() { errs[i] = WaitRollout(ctx, c, o.GetKind(), o.GetNamespace(), o.GetName()) })
		}
	}
	wg.Wait()
	slices.Sort(names)
	return names, errors.Join(errs...)
}

// RolledOut tells at once whether the rollout is complete; the error says what is missing.
func RolledOut(ctx context.Context, c *kube.Client, kind, namespace, name string) error {
	r, err := kube.Retry(ctx, c, fmt.Sprintf("get %s %s/%s", kind, namespace, name), func(ctx context.Context) (rollout, error) {
		return readRollout(ctx, c, kind, namespace, name)
	})
	if err != nil {
		return err
	}
	if !r.done() {
		return fmt.Errorf("%s %s/%s: %s", kind, namespace, name, r)
	}
	young, err := young(ctx, c, namespace, r)
	if err == nil && young != "" {
		err = fmt.Errorf("%s %s/%s: %s", kind, namespace, name, young)
	}
	return err
}

// lookEvery is how often the cause is looked for.
const lookEvery = 10 * time.Second

// proving is how long a container without a readiness probe runs before it counts as ready:
// Kubernetes calls it ready as soon as it runs, even if it ends at once.
const proving = 5 * time.Second

// young says which container of a rollout that is done has to run a while before it counts;
// "" when none has.
func young(ctx context.Context, c *kube.Client, namespace string, r rollout) (string, error) {
	if r.want == 0 || r.selector == nil {
		return "", nil
	}
	pods, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(r.selector)})
	if err != nil {
		return "", err
	}
	for _, p := range CurrentPods(pods.Items) {
		if why := unproven(&p, time.Now()); p.DeletionTimestamp == nil && why != "" {
			return why, nil
		}
	}
	return "", nil
}

// unproven says which container without a readiness probe has not run for long enough.
func unproven(p *corev1.Pod, now time.Time) string {
	for _, spec := range p.Spec.Containers {
		if spec.ReadinessProbe != nil {
			continue
		}
		for _, s := range p.Status.ContainerStatuses {
			switch {
			case s.Name != spec.Name:
			case s.State.Running == nil:
				return fmt.Sprintf("container %s of pod %s does not run any more", s.Name, p.Name)
			case now.Sub(s.State.Running.StartedAt.Time) < proving:
				return fmt.Sprintf("container %s of pod %s has just begun to run, and has no readiness probe", s.Name, p.Name)
			}
		}
	}
	return ""
}

// rollout is what the three kinds have in common.
type rollout struct {
	generation, observed      int64
	want, updated, available  int32
	total                     int32 // pods of all templates
	selector                  *metav1.LabelSelector
	failed                    string // a Deployment can make no pod, or its progress deadline passed
	currentRevision, revision string // of a StatefulSet
}

func (r rollout) done() bool {
	return r.observed >= r.generation && r.updated >= r.want && r.available >= r.want &&
		r.total <= r.want && r.currentRevision == r.revision
}

func (r rollout) String() string { return r.seen("") }

// seen says how far the rollout is, and why it is no further, as far as that is known.
func (r rollout) seen(why string) string {
	if r.observed < r.generation {
		return fmt.Sprintf("generation %d is not observed yet", r.generation)
	}
	s := fmt.Sprintf("%d of %d pods updated, %d available", r.updated, r.want, r.available)
	if r.total > r.want {
		s += fmt.Sprintf(", %d old ones left", r.total-r.want)
	}
	switch {
	case why != "":
		s += ": " + why
	case r.failed != "":
		s += " (" + r.failed + ")"
	}
	return s
}

func readRollout(ctx context.Context, c *kube.Client, kind, namespace, name string) (rollout, error) {
	apps := c.Kubernetes.AppsV1()
	switch kind {
	case "Deployment":
		d, err := apps.Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return rollout{}, err
		}
		return ofDeployment(d), nil
	case "StatefulSet":
		s, err := apps.StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return rollout{}, err
		}
		return rollout{
			generation: s.Generation, observed: s.Status.ObservedGeneration, want: replicas(s.Spec.Replicas),
			updated: s.Status.UpdatedReplicas, available: s.Status.AvailableReplicas, total: s.Status.Replicas,
			selector: s.Spec.Selector, currentRevision: s.Status.CurrentRevision, revision: s.Status.UpdateRevision,
		}, nil
	case "DaemonSet":
		d, err := apps.DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return rollout{}, err
		}
		return rollout{
			generation: d.Generation, observed: d.Status.ObservedGeneration, want: d.Status.DesiredNumberScheduled,
			updated: d.Status.UpdatedNumberScheduled, available: d.Status.NumberAvailable,
			total: d.Status.CurrentNumberScheduled, selector: d.Spec.Selector,
		}, nil
	}
	return rollout{}, fmt.Errorf("kind %s has no rollout", kind)
}

func ofDeployment(d *appsv1.Deployment) rollout {
	r := rollout{
		generation: d.Generation, observed: d.Status.ObservedGeneration, want: replicas(d.Spec.Replicas),
		updated: d.Status.UpdatedReplicas, available: d.Status.AvailableReplicas, total: d.Status.Replicas,
		selector: d.Spec.Selector,
	}
	for _, cond := range d.Status.Conditions {
		switch {
		case cond.Type == appsv1.DeploymentReplicaFailure && cond.Status == corev1.ConditionTrue:
			r.failed = ReadRefusal(cond.Message).Text
		case cond.Type == appsv1.DeploymentProgressing && cond.Status == corev1.ConditionFalse && r.failed == "":
			r.failed = cond.Message
		}
	}
	return r
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// WaitPodDone waits until a pod has succeeded. A pod that failed ends the wait
// with kube.CodeFailed.
func WaitPodDone(ctx context.Context, c *kube.Client, namespace, name string) error {
	return waitPod(ctx, c, namespace, name, "done", func(p *corev1.Pod) (bool, string) {
		if p.Status.Phase == corev1.PodFailed {
			return false, "it failed"
		}
		return p.Status.Phase == corev1.PodSucceeded, ""
	})
}

// WaitPodReady waits until a pod is Ready. A pod that has ended ends the wait with kube.CodeFailed.
func WaitPodReady(ctx context.Context, c *kube.Client, namespace, name string) error {
	return waitPod(ctx, c, namespace, name, "ready", func(p *corev1.Pod) (bool, string) {
		if PodReady(p) || p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			return PodReady(p), ""
		}
		return false, "it has ended"
	})
}

// waitPod waits until a pod is as it should be; never says why it will not be.
func waitPod(ctx context.Context, c *kube.Client, namespace, name, be string, is func(*corev1.Pod) (yes bool, never string)) error {
	what := fmt.Sprintf("Pod %s/%s to be %s", namespace, name, be)
	err := c.WaitFor(ctx, what, kube.Poll, func(ctx context.Context) (bool, string, error) {
		p, err := c.Kubernetes.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		yes, never := is(p)
		if never != "" {
			return false, "", failed(errors.New(strings.TrimSpace(never + " " + p.Status.Reason + " " + p.Status.Message)))
		}
		trouble, _ := PodTrouble(p, nil)
		return yes, cmp.Or(trouble.Text, "phase "+string(p.Status.Phase)), nil
	})
	return kube.WithCause(ctx, err, func(ctx context.Context) string {
		p, err := c.Kubernetes.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ""
		}
		return worst(ctx, c, []corev1.Pod{*p}, events(ctx, c, namespace))
	})
}

func failed(err error) error {
	return &fault.Fault{
		Code: kube.CodeFailed, Class: fault.Step,
		Fix: "correct the cause, then run the same command again", Err: err,
	}
}

// PodReady tells whether a pod is Ready and stays.
func PodReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// readyAtOnce is within what time of its start a pod's condition Ready is set first.
const readyAtOnce = 5 * time.Second

// replaceUnready deletes the pods of a StatefulSet that have a former template and do not become
// ready, and tells whether there were any. Kubernetes waits for these to become ready before it replaces any pod
// (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback).
func replaceUnready(ctx context.Context, c *kube.Client, namespace, name string) (replaced bool, err error) {
	if c.Plan != nil {
		return false, nil
	}
	set, err := c.Kubernetes.AppsV1().StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || set.Status.ObservedGeneration < set.Generation || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false, err
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil && *rolling.Partition > 0 {
		return false, nil // who says which pods have which template goes by the number of each
	}
	pods, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector)})
	if err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		former := metav1.IsControlledBy(&p, set) && template(&p) != set.Status.UpdateRevision
		if !former || p.DeletionTimestamp != nil || !broken(&p) {
			continue
		}
		c.Report("pod %s/%s has a former template and does not become ready: it is replaced", namespace, p.Name)
		err := c.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if kube.IgnoreNotFound(err) != nil {
			return replaced, err
		}
		replaced = true
	}
	return replaced, nil
}

// broken reports whether a pod has not been ready since it was started, or crashes.
func broken(p *corev1.Pod) bool {
	at := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if at < 0 || p.Status.StartTime == nil { // no node has it
		return true
	}
	ready := p.Status.Conditions[at]
	if ready.Status == corev1.ConditionTrue {
		return false
	}
	trouble, _ := PodTrouble(p, nil) // without a probe, a pod is ready for the moments in which it runs
	return slices.Contains([]TroubleKind{TroubleCrash, TroubleMemory}, trouble.Kind) || ready.LastTransitionTime.Sub(p.Status.StartTime.Time) <= readyAtOnce
}
