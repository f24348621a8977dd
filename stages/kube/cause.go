package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
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
		if e := c.lastWarning(ctx, namespace, "", ""); e != "" {
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
	if container := crashed(p); container != "" {
		if lines := c.lastLines(ctx, p, container); lines != "" {
			cause += "; it wrote: " + lines
		}
	}
	if cause == "" || waitsOnNode(p) {
		// What holds up a pod before its containers start is in events only.
		if e := c.lastWarning(ctx, p.Namespace, "Pod", p.Name); e != "" {
			cause = e
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

// crashed is the name of the first container that ended with an error; "" if
// none did.
func crashed(p *corev1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 && !s.Ready {
				return s.Name
			}
		}
	}
	return ""
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
func (c *Client) lastLines(ctx context.Context, p *corev1.Pod, container string) string {
	for _, previous := range []bool{true, false} {
		text, err := c.Logs(ctx, p.Namespace, p.Name, LogOptions{Container: container, Lines: causeLogLines, Previous: previous})
		if err != nil {
			continue
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
	stream, err := c.Kubernetes.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s/%s: %w", namespace, pod, err)
	}
	b, err := io.ReadAll(stream)
	_ = stream.Close()
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s/%s: %w", namespace, pod, err)
	}
	return string(b), nil
}

// lastWarning is the newest event of type Warning about an object, "reason
// message". Without kind and name it is the newest about something that could
// not make its pods.
func (c *Client) lastWarning(ctx context.Context, namespace, kind, name string) string {
	selector := fields.Set{"type": corev1.EventTypeWarning}
	if name != "" {
		selector["involvedObject.kind"], selector["involvedObject.name"] = kind, name
	} else {
		selector["reason"] = "FailedCreate"
	}
	list, err := c.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	e := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return cmp.Compare(seenAt(a), seenAt(b)) })
	return strings.TrimSpace(e.Reason + " " + strings.TrimSpace(e.Message))
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
