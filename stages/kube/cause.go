package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// causeLogLines is how many lines of a container's log a cause quotes.
const causeLogLines = 5

// PodCause says in one line why the pods of selector in namespace are not
// ready: an image that cannot be pulled, a container that keeps ending and the
// last lines it wrote, no node to run on, a volume that cannot be mounted, or
// that there is no pod and why. "" when nothing is wrong or cannot be found out.
func (c *Client) PodCause(ctx context.Context, namespace, selector string) string {
	pods, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return ""
	}
	if len(pods.Items) == 0 {
		if e := c.lastEvent(ctx, namespace, fields.Set{"reason": "FailedCreate"}); e != "" {
			return "there is no pod: " + e
		}
		return "there is no pod"
	}
	// The newest pod is the one of the current template.
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for i := range pods.Items {
		if cause := c.causeOf(ctx, &pods.Items[i]); cause != "" {
			return cause
		}
	}
	return ""
}

// causeOf says why p is not ready, "" when it is, or has succeeded.
func (c *Client) causeOf(ctx context.Context, p *corev1.Pod) string {
	if p.Status.Phase == corev1.PodSucceeded || podReady(p) {
		return ""
	}
	cause := podCause(p)
	if container, previous := crashed(p); container != "" {
		if lines := c.lastLines(ctx, p, container, previous); lines != "" {
			cause += "; it wrote: " + lines
		}
	}
	if cause == "" || waitsOnNode(p) {
		// What holds up a pod before its containers start is in events only.
		if e := c.lastEvent(ctx, p.Namespace, podEvents(p, fields.Set{"type": corev1.EventTypeWarning})); e != "" {
			cause = e
		} else if cause == "" && waitsOnNode(p) {
			cause = c.lastEvent(ctx, p.Namespace, podEvents(p, fields.Set{"reason": "Pulling"})) // may just be slow
		}
	}
	if cause == "" {
		return ""
	}
	return "pod " + p.Name + ": " + cause
}

// podCause reads the cause off the pod alone.
func podCause(p *corev1.Pod) string {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return strings.TrimSpace(cond.Reason + " " + cond.Message)
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			cause := fmt.Sprintf("container %s: %s", s.Name, w.Reason)
			if w.Message != "" && w.Reason != "CrashLoopBackOff" { // whose message is only how long it backs off
				cause += " " + w.Message
			}
			if t := s.LastTerminationState.Terminated; t != nil {
				cause += ", " + ended(t)
			}
			return cause
		}
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s %s", s.Name, ended(t))
		}
		if r := s.State.Running; r != nil && !s.Ready {
			if t := s.LastTerminationState.Terminated; t != nil && t.ExitCode != 0 {
				return fmt.Sprintf("container %s was started again %d times, %s", s.Name, s.RestartCount, ended(t))
			}
		}
	}
	if p.Status.Reason != "" {
		return strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
	}
	return ""
}

func ended(t *corev1.ContainerStateTerminated) string {
	s := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		s += " (" + t.Reason + ")"
	}
	if msg := strings.TrimSpace(t.Message); msg != "" {
		s += ": " + msg
	}
	return s
}

// crashed is the name of the first container that ended with an error, and
// whether the run that ended is the one before the current one; "" if none did.
func crashed(p *corev1.Pod) (container string, previous bool) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return s.Name, false
		}
		if t := s.LastTerminationState.Terminated; t != nil && t.ExitCode != 0 && !s.Ready {
			// While it waits for its next run, the last one is the current one.
			return s.Name, s.State.Running != nil
		}
	}
	return "", false
}

// waitsOnNode tells whether no container of p has been started yet.
func waitsOnNode(p *corev1.Pod) bool {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return false
		}
	}
	return p.Spec.NodeName != ""
}

// lastLines are the last lines a container wrote before it ended, in one line.
func (c *Client) lastLines(ctx context.Context, p *corev1.Pod, container string, previous bool) string {
	for _, run := range []bool{previous, !previous} {
		text, err := c.Logs(ctx, p.Namespace, p.Name, LogOptions{Container: container, Lines: causeLogLines, Previous: run})
		if err != nil || strings.HasPrefix(text, "unable to retrieve container logs") {
			continue // the kubelet has removed that run already
		}
		var lines []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			return strings.Join(lines, " | ")
		}
	}
	return ""
}

// LogOptions tell what of a pod's log is read.
type LogOptions struct {
	Container string // "" is the only one
	Lines     int64  // from the end; 0 means all
	Previous  bool   // of the container's run before the current one
}

// maxLog is how many bytes of a log Logs returns at most.
const maxLog = 1 << 20

// Logs returns what a pod wrote so far, 1 MiB at most.
func (c *Client) Logs(ctx context.Context, namespace, pod string, opts LogOptions) (string, error) {
	limit := int64(maxLog)
	o := &corev1.PodLogOptions{Container: opts.Container, Previous: opts.Previous, LimitBytes: &limit}
	if opts.Lines > 0 {
		o.TailLines = &opts.Lines
	}
	var text []byte
	err := c.Retry(ctx, fmt.Sprintf("read the log of pod %s/%s", namespace, pod), func(ctx context.Context) error {
		stream, err := c.Kubernetes.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
		if err != nil {
			return err
		}
		text, err = io.ReadAll(stream)
		_ = stream.Close()
		return err
	})
	return string(text), err
}

// podEvents selects those events about a pod that match more.
func podEvents(p *corev1.Pod, more fields.Set) fields.Set {
	s := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": p.Name}
	maps.Copy(s, more)
	return s
}

// lastEvent is the newest event of a selection that says more than its reason,
// as "reason message".
func (c *Client) lastEvent(ctx context.Context, namespace string, selector fields.Set) string {
	list, err := c.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return ""
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return strings.Contains(e.Message, "Error: ErrImagePull") || strings.Contains(e.Message, "Error: ImagePullBackOff")
	})
	if len(events) == 0 {
		return ""
	}
	e := slices.MaxFunc(events, func(a, b corev1.Event) int { return cmp.Compare(seenAt(a), seenAt(b)) })
	msg := e.Message
	if _, rest, ok := strings.Cut(msg, "}: "); ok && strings.HasPrefix(msg, "spec.") {
		msg = rest // without the path of the container
	}
	return strings.TrimSpace(e.Reason + " " + strings.TrimSpace(msg))
}

// seenAt is when an event happened last, in nanoseconds.
func seenAt(e corev1.Event) int64 {
	at := e.LastTimestamp.Time
	for _, t := range []metav1.MicroTime{e.EventTime} {
		if t.After(at) {
			at = t.Time
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at.UnixNano()
}
