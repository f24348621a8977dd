package suites

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// lastLines is how many lines of a Job's log are told with its failure.
const lastLines = 20

// longestLine is what is read of a line at most.
const longestLine = 64 << 10

// logs writes what the containers of Jobs write to the log of a step, line by line, while
// they run: a Job that fails may take its pods along.
type logs struct {
	client *kube.Client
	counts func(name string, n int64) // told what is counted
	ctx    func() context.Context     // in which logs are read
	close  func()

	mu   sync.Mutex // of out as well, so that no lines are mixed
	out  io.Writer
	read map[string]bool            // by container and run of it
	last map[string][]string        // the last lines, by Job
	busy map[string]*sync.WaitGroup // those that read, by Job
}

func newLogs(ctx context.Context, client *kube.Client, out io.Writer, counts func(name string, n int64)) *logs {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is written at the end is read, too
	return &logs{
		client: client, counts: counts, ctx: func() context.Context { return ctx }, close: cancel, out: out,
		read: map[string]bool{}, last: map[string][]string{}, busy: map[string]*sync.WaitGroup{},
	}
}

// follow reads the logs of all containers of a Job's pods that have begun and are not read
// yet.
func (l *logs) follow(job string, pods []corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pods {
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if c.RestartCount > 0 {
				l.start(job, p, c.Name, c.RestartCount-1, true)
			}
			if c.State.Running != nil || c.State.Terminated != nil {
				l.start(job, p, c.Name, c.RestartCount, false)
			}
		}
	}
}

// start reads the log of one run of a container, unless it is read already.
func (l *logs) start(job string, p corev1.Pod, container string, run int32, previous bool) {
	id := fmt.Sprintf("%s/%s/%d", p.UID, container, run)
	if l.read[id] {
		return
	}
	l.read[id] = true
	if l.busy[job] == nil {
		l.busy[job] = &sync.WaitGroup{}
	}
	l.busy[job].Go(func() {
		limit := int64(1 << 20)
		o := &corev1.PodLogOptions{Container: container, Previous: previous, Follow: !previous, LimitBytes: &limit}
		stream, err := l.client.Kubernetes.CoreV1().Pods(p.Namespace).GetLogs(p.Name, o).Stream(l.ctx())
		if err != nil {
			l.line(job, p.Name, container, "its log cannot be read: "+err.Error())
			return
		}
		defer func() { _ = stream.Close() }()
		lines := bufio.NewReaderSize(stream, longestLine)
		for {
			line, more, err := lines.ReadLine()
			if err != nil {
				return
			}
			for rest := more; rest && err == nil; { // the rest of a line that is too long
				_, rest, err = lines.ReadLine()
			}
			l.line(job, p.Name, container, string(line))
		}
	})
}

// line writes a line of a log, without what looks like a secret.
func (l *logs) line(job, pod, container, text string) {
	text = redact.Text(strings.TrimRight(text, "\r"))
	if name, n, is := count(text); is {
		l.counts(name, n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s/%s: %s\n", pod, container, text)
	if strings.TrimSpace(text) != "" {
		l.last[job] = append(l.last[job], text)
		l.last[job] = l.last[job][max(0, len(l.last[job])-lastLines):]
	}
}

var countLine = regexp.MustCompile(`^count ([a-z][a-z0-9-]{0,62}) ([0-9]{1,18})$`)

// count reads a line with which a Job says that it has counted something: "count rows 40".
func count(line string) (name string, n int64, is bool) {
	m := countLine.FindStringSubmatch(line)
	if m == nil {
		return "", 0, false
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	return m[1], n, err == nil
}

// end waits until the logs of a Job that has ended are read, and returns their last lines.
func (l *logs) end(ctx context.Context, job string) []string {
	l.mu.Lock()
	busy := l.busy[job]
	l.mu.Unlock()
	if busy != nil {
		done := make(chan struct{})
		go func() {
			busy.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.last[job])
}
