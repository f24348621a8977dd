package readiness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

const maxLog = 1 << 20 // bytes

// Logs returns what a pod wrote so far, 1 MiB at most.
func Logs(ctx context.Context, c *kube.Client, namespace, pod string, opts corev1.PodLogOptions) (string, error) {
	opts.LimitBytes = new(int64(maxLog))
	text, err := kube.Retry(ctx, c, fmt.Sprintf("read the log of pod %s/%s", namespace, pod), func(ctx context.Context) ([]byte, error) {
		stream, err := c.Kubernetes.CoreV1().Pods(namespace).GetLogs(pod, &opts).Stream(ctx)
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
func LastLines(ctx context.Context, c *kube.Client, p *corev1.Pod, t Trouble, n int64) ([]string, error) {
	if t.Container == "" {
		return nil, nil
	}
	secrets, err := SecretsOf(ctx, c, p)
	if err != nil {
		return nil, err
	}
	var first error
	for _, previous := range []bool{t.Previous, !t.Previous} {
		text, err := Logs(ctx, c, p.Namespace, p.Name, corev1.PodLogOptions{Container: t.Container, TailLines: &n, Previous: previous})
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

// leastSecret is the length of the shortest value of a Secret that is taken for a secret whatever
// its key is called: a shorter one may be a word, such as a user name.
const leastSecret = 12

// SecretsOf are the values of the Secrets that a pod has in its variables and files, which its
// programs may write to their logs.
func SecretsOf(ctx context.Context, c *kube.Client, p *corev1.Pod) (*redact.Secrets, error) {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		return nil, err
	}
	pod := &unstructured.Unstructured{Object: o}
	pod.SetKind("Pod")
	out := &redact.Secrets{}
	return out, render.EachSecret(ctx, c, pod, func(key, text string) {
		if len(text) >= leastSecret || redact.LooksSecret(key, text) {
			out.Add(text)
		}
	})
}
