package main

import (
	"context"
	"errors"
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
		sleep(ctx, 40*time.Millisecond)
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

// watch keeps a part of the node up to date until ctx ends; check is nil once it is
// ready. One that was ready and is not has failed.
func (n *node) watch(ctx context.Context, part, name string, check func(context.Context) error) {
	unready := "waiting"
	for ctx.Err() == nil {
		if err := check(ctx); err != nil {
			n.health.set(part, unready, err.Error())
			sleep(ctx, 100*time.Millisecond)
			continue
		}
		if unready == "waiting" {
			unready = "failed"
			n.logLine(name + " is ready")
		}
		n.health.set(part, "ready", "")
		sleep(ctx, 2*time.Second)
	}
}

// nodeReady is nil when the kubelet of this start has reported the node ready: what
// an earlier start reported does not count.
func (n *node) nodeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	object, err := n.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errors.New("the kubelet has not registered the node")
	}
	if err != nil {
		return err
	}
	for _, c := range object.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
			continue
		case c.LastHeartbeatTime.Time.Before(n.started.Truncate(time.Second)):
			return errors.New("the kubelet has not reported since this start")
		case c.Status == corev1.ConditionTrue:
			return nil
		}
		return errors.New(c.Message)
	}
	return errors.New("the node has no condition Ready")
}
