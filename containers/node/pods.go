package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
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

// podsFile is where a node keeps which pods were ready before it started, until they are
// again: one that is ended before that waits for them at its next start, too.
const podsFile = "pods.json"

// readPods reads what writePods wrote; where there is nothing that can be read, there are none.
func readPods(file string) map[types.UID]bool {
	out := map[types.UID]bool{}
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return map[types.UID]bool{}
	}
	return out
}

func writePods(file string, were map[types.UID]bool) error {
	text, err := json.Marshal(were)
	if err != nil {
		return err
	}
	return writeFile(file, text, 0o644)
}

// markPodsNotReady resets the readiness that the pods reported before this start, since it
// is stale; the kubelet reports them ready again. It adds the pods that were ready to
// were, also when it fails: when it is tried again, some no longer are. Before it marks any it
// keeps them.
func markPodsNotReady(ctx context.Context, client kubernetes.Interface, were map[types.UID]bool, keep func() error) error {
	pods, err := client.CoreV1().Pods("").List(ctx, onThisNode)
	if err != nil {
		return fmt.Errorf("list the pods of the last start: %w", err)
	}
	ready := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !podutil.IsPodReady(&p) })
	for _, pod := range ready {
		were[pod.UID] = true
	}
	if err := keep(); err != nil {
		return err
	}
	mark, ctx := errgroup.WithContext(ctx)
	mark.SetLimit(8)
	for _, pod := range ready {
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

// podsLimit is how long commands wait for pods to be back: the next start does not wait for
// one that is not by then.
const podsLimit = 2 * time.Minute

// watchPods keeps the part of the pods up to date until those that were ready
// before this start are ready again, or gone.
func (n *node) watchPods(ctx context.Context, were map[types.UID]bool) {
	forget := sync.OnceFunc(func() {
		if err := os.Remove(n.settings.file(podsFile)); err != nil {
			n.logLine("the next start waits for pods that were ready before: " + err.Error())
		}
	})
	for began := time.Now(); ctx.Err() == nil; {
		if time.Since(began) > podsLimit {
			forget()
		}
		pods, err := n.client.CoreV1().Pods("").List(ctx, onThisNode)
		if err != nil {
			n.health.set(partPods, "waiting", err.Error())
		} else if missing := notBack(pods.Items, were); len(missing) > 0 {
			n.health.set(partPods, "waiting", fmt.Sprintf("%d of %d pods are not ready again: %s", len(missing), len(were), strings.Join(missing, ", ")))
		} else {
			if len(were) > 0 {
				n.logLine(fmt.Sprintf("%d pods are ready again", len(were)))
			}
			n.health.set(partPods, "ready", fmt.Sprintf("%d pods are ready again", len(were)))
			forget()
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
