package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// awaitAPI waits until the API server answers 200 at path; false when ctx ended
// first.
func (n *node) awaitAPI(ctx context.Context, path string) bool {
	for ctx.Err() == nil {
		err := n.askAPI(ctx, path)
		if err == nil {
			return true
		}
		n.health.set(partAPI, "waiting", err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(40 * time.Millisecond):
		}
	}
	return false
}

// askAPI is the error of one request; nil when the answer was 200.
func (n *node) askAPI(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	body, err := n.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil && len(body) > 0 {
		return fmt.Errorf("%w: %s", err, body)
	}
	return err
}

// watchAPI keeps the API server's part up to date until ctx ends.
func (n *node) watchAPI(ctx context.Context) {
	every(ctx, func() time.Duration {
		if err := n.askAPI(ctx, "/readyz"); err != nil {
			n.health.set(partAPI, "failed", err.Error())
		} else {
			n.health.set(partAPI, "ready", "")
		}
		return 2 * time.Second
	})
}

// watchNode keeps the node's part up to date until ctx ends.
func (n *node) watchNode(ctx context.Context) {
	wasReady := false
	every(ctx, func() time.Duration {
		ready, why := n.nodeReady(ctx)
		switch {
		case ready:
			if !wasReady {
				say(fmt.Sprintf("the node is ready after %s", time.Since(n.started).Round(10*time.Millisecond)))
			}
			wasReady = true
			n.health.set(partNode, "ready", "")
			return 2 * time.Second
		case wasReady:
			n.health.set(partNode, "failed", why)
			return time.Second
		}
		n.health.set(partNode, "waiting", why)
		return 100 * time.Millisecond
	})
}

// nodeReady says whether the kubelet of this start has reported the node ready:
// what an earlier start reported does not count.
func (n *node) nodeReady(ctx context.Context) (bool, string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	object, err := n.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, "the kubelet has not registered the node"
	}
	if err != nil {
		return false, err.Error()
	}
	for _, c := range object.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.LastHeartbeatTime.Time.Before(n.started.Truncate(time.Second)) {
			return false, "the kubelet has not reported since this start"
		}
		return c.Status == corev1.ConditionTrue, c.Message
	}
	return false, "the node has no condition Ready"
}

// every calls f, waits as long as it says, and so on until ctx ends.
func every(ctx context.Context, f func() time.Duration) {
	for wait := time.Duration(0); ; wait = f() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// markPodsNotReady takes back what the pods reported before this start, so that
// nobody mistakes it for the present; the kubelet reports them ready again.
func markPodsNotReady(ctx context.Context, client kubernetes.Interface) error {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName})
	if err != nil {
		return fmt.Errorf("list the pods of the last start: %w", err)
	}
	mark, ctx := errgroup.WithContext(ctx)
	mark.SetLimit(8)
	for _, pod := range pods.Items {
		patch, stale := notReadyPatch(pod, time.Now())
		if !stale {
			continue
		}
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

// notReadyPatch is the change of a pod's status; stale is false when it needs
// none.
func notReadyPatch(pod corev1.Pod, now time.Time) (patch []byte, stale bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeRestarted","lastTransitionTime":%q}]}}`,
				pod.UID, now.UTC().Format(time.RFC3339)), true
		}
	}
	return nil, false
}
