package kube

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// readyAtOnce is within what time of its start a pod's condition Ready is set first.
const readyAtOnce = 5 * time.Second

// replaceUnready deletes the pods of a StatefulSet that have a former template and do not become
// ready, and tells whether there were any. Kubernetes waits for these to become ready before it replaces any pod
// (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback).
func (c *Client) replaceUnready(ctx context.Context, namespace, name string) (replaced bool, err error) {
	if dryrun.On(ctx) {
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
		c.progress("pod %s/%s has a former template and does not become ready: it is replaced", namespace, p.Name)
		err := c.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if ifThere(err) != nil {
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
