package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// priorityClasses is the check of the API server that is slow to pass even when
// there is nothing to do: it sleeps for a second first.
const priorityClasses = "poststarthook/scheduling/bootstrap-system-priority-classes"

// awaitAPI waits until the API server answers 200 at path, leaving out the named
// checks; false when ctx ended first.
func (n *node) awaitAPI(ctx context.Context, path string, without ...string) bool {
	for ctx.Err() == nil {
		err := n.requestAPI(ctx, path, without...)
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

// requestAPI is the error of one request; nil when the answer was 200.
func (n *node) requestAPI(ctx context.Context, path string, without ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request := n.client.Discovery().RESTClient().Get().AbsPath(path)
	for _, check := range without {
		request.Param("exclude", check)
	}
	body, err := request.DoRaw(ctx)
	if err != nil && len(body) > 0 {
		return fmt.Errorf("%w: %s", err, body)
	}
	return err
}

// watchAPI keeps the API server's part up to date until ctx ends.
func (n *node) watchAPI(ctx context.Context) {
	wasReady := false
	every(ctx, func() time.Duration {
		if err := n.requestAPI(ctx, "/readyz"); err != nil {
			n.health.set(partAPI, state(wasReady), err.Error())
			return 100 * time.Millisecond
		}
		if !wasReady {
			wasReady = true
			n.logLine("the API server is ready")
		}
		n.health.set(partAPI, "ready", "")
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
				n.logLine("the node is ready")
			}
			wasReady = true
			n.health.set(partNode, "ready", "")
			return 2 * time.Second
		}
		n.health.set(partNode, state(wasReady), why)
		return 100 * time.Millisecond
	})
}

// state of a part that is not ready.
func state(wasReady bool) string {
	if wasReady {
		return "failed"
	}
	return "waiting"
}

// nodeReady reports whether the kubelet of this start has reported the node ready:
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
