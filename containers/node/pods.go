package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// onThisNode selects the pods that are bound to the node.
var onThisNode = metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName} //nolint:gochecknoglobals // read-only

// makeNode makes the node's object, which the kubelet takes over. A kubelet that finds
// none, because it has not registered itself yet, gives its first sign of life ten seconds
// later (ensureLease of k8s.io/component-helpers v0.37.2, apimachinery/lease/controller.go).
func makeNode(ctx context.Context, client kubernetes.Interface) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make node %s: %w", nodeName, err)
	}
	return nil
}

// markPodsNotReady resets the readiness that the pods reported before this start, since it
// is stale; the kubelet reports them ready again. It adds the pods that were ready to were, also
// when it fails: when it is tried again, some no longer are.
func markPodsNotReady(ctx context.Context, client kubernetes.Interface, were map[types.UID]bool) error {
	pods, err := client.CoreV1().Pods("").List(ctx, onThisNode)
	if err != nil {
		return fmt.Errorf("list the pods of the last start: %w", err)
	}
	mark, ctx := errgroup.WithContext(ctx)
	mark.SetLimit(8)
	for _, pod := range pods.Items {
		if !podutil.IsPodReady(&pod) {
			continue
		}
		were[pod.UID] = true
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeRestarted","lastTransitionTime":%q}]}}`,
			pod.UID, time.Now().UTC().Format(time.RFC3339))
		mark.Go(func() error {
			_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("mark pod %s/%s of the last start: %w", pod.Namespace, pod.Name, err)
			}
			return nil
		})
	}
	return mark.Wait()
}

// watchPods keeps the part of the pods up to date until those that were ready
// before this start are ready again, or gone.
func (n *node) watchPods(ctx context.Context, were map[types.UID]bool) {
	for ctx.Err() == nil {
		pods, err := n.client.CoreV1().Pods("").List(ctx, onThisNode)
		if err != nil {
			n.health.set(partPods, "waiting", err.Error())
		} else if missing := notBack(pods.Items, were); len(missing) > 0 {
			n.health.set(partPods, "waiting", fmt.Sprintf("%d of %d pods are not ready again: %s", len(missing), len(were), strings.Join(missing, ", ")))
		} else {
			n.health.set(partPods, "ready", fmt.Sprintf("%d pods are ready again", len(were)))
			return
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// notBack names those of the pods that were ready and are not.
func notBack(pods []corev1.Pod, were map[types.UID]bool) []string {
	var names []string
	for _, pod := range pods {
		ended := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if were[pod.UID] && !ended && !podutil.IsPodReady(&pod) {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	return names
}
