package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

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
	text, err := Retry(ctx, c, fmt.Sprintf("read the log of pod %s/%s", namespace, pod), func(ctx context.Context) ([]byte, error) {
		stream, err := c.Kubernetes.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = stream.Close() }()
		return io.ReadAll(stream)
	})
	return string(text), err
}

// LastLines are the last lines, n at most, that the container of a pod's trouble
// wrote before it failed, without the pod's secrets and what looks like one. The error is that of
// the run that was wanted; the lines may then be of another one.
func (c *Client) LastLines(ctx context.Context, p *corev1.Pod, t Trouble, n int64) ([]string, error) {
	if t.Container == "" {
		return nil, nil
	}
	secrets, err := c.SecretsOf(ctx, p)
	if err != nil {
		return nil, err
	}
	var first error
	for _, previous := range []bool{t.Previous, !t.Previous} {
		text, err := c.Logs(ctx, p.Namespace, p.Name, LogOptions{Container: t.Container, Lines: n, Previous: previous})
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if lines := split(secrets.Redact(text)); len(lines) > 0 {
			return lines, first
		}
	}
	return nil, first
}

// split makes lines of a log; empty when the kubelet has removed it already.
func split(text string) []string {
	if strings.HasPrefix(text, "unable to retrieve container logs") {
		return nil
	}
	var lines []string
	for line := range strings.Lines(redact.External(text)) {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
