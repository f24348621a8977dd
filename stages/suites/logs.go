package suites

import (
	"bufio"
	"cmp"
	"context"
	"errors"
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

// mostOfALog is what is written of the log of a container, in bytes. What it counts, which it
// says at its end, is heard all the same.
const mostOfALog = 1 << 20

// logs writes what the containers of Jobs write to the log of a step, line by line, while
// they run: a Job that fails may take its pods along.
type logs struct {
	client *kube.Client
	counts func(name string, n int64) // told what is counted
	ctx    func() context.Context     // in which logs are read
	close  func()

	mu   sync.Mutex // of out as well, so that no lines are mixed
	out  io.Writer
	runs map[string]map[string]*reading // by Job, and by container and run of it
	last map[string][]string            // the last lines, by Job
	busy map[string]*sync.WaitGroup     // those that read, by Job
}

func newLogs(ctx context.Context, client *kube.Client, out io.Writer, counts func(name string, n int64)) *logs {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is written at the end is read, too
	return &logs{
		client: client, counts: counts, ctx: func() context.Context { return ctx }, close: cancel, out: out,
		runs: map[string]map[string]*reading{}, last: map[string][]string{}, busy: map[string]*sync.WaitGroup{},
	}
}

// reading is how far the log of one run of a container is read.
type reading struct {
	busy  bool   // it is being read
	whole bool   // it was, to its end
	needs bool   // it has what a Job that has completed wrote
	why   string // it could not be read
	lines int    // that were read
	size  int    // of these, in bytes
}

// follow reads the logs of all containers of a Job's pods that have begun and are not read
// yet, and those again that could not be read.
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

// start reads the log of one run of a container, unless it is read already. That of one which
// is over is tried once: it may be gone.
func (l *logs) start(job string, p corev1.Pod, container string, run int32, previous bool) {
	id := fmt.Sprintf("%s/%s/%d", p.UID, container, run)
	if l.runs[job] == nil {
		l.runs[job], l.busy[job] = map[string]*reading{}, &sync.WaitGroup{}
	}
	r := l.runs[job][id]
	if r == nil {
		r = &reading{}
		l.runs[job][id] = r
	}
	r.needs = !previous && p.Status.Phase == corev1.PodSucceeded
	if r.busy || r.whole || previous && r.why != "" {
		return
	}
	r.busy = true
	l.busy[job].Go(func() {
		err := l.copy(job, p, container, previous, r)
		why := ""
		if err != nil {
			why = "its log cannot be read: " + err.Error()
		}
		l.mu.Lock()
		known := why == r.why
		r.busy, r.whole, r.why = false, err == nil, why
		l.mu.Unlock()
		if err != nil && !known {
			l.line(job, p.Name, container, why)
		}
	})
}

// copy writes the lines of the log of one run of a container, but for those that it wrote
// before.
func (l *logs) copy(job string, p corev1.Pod, container string, previous bool, r *reading) error {
	secrets, err := l.client.SecretsOf(l.ctx(), &p)
	if err != nil {
		return err
	}
	o := &corev1.PodLogOptions{Container: container, Previous: previous, Follow: !previous}
	stream, err := l.client.Kubernetes.CoreV1().Pods(p.Namespace).GetLogs(p.Name, o).Stream(l.ctx())
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewReaderSize(stream, longestLine)
	for n := 0; ; n++ {
		line, more, err := lines.ReadLine()
		text := strings.TrimRight(string(line), "\r")
		for more && err == nil { // the rest of a line that is too long
			_, more, err = lines.ReadLine()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			r.lines = max(0, r.lines-1) // it may have been a part of a line
			return err
		case n < r.lines:
			continue
		}
		r.lines++
		before := r.size
		r.size += len(text) + 1
		if _, _, counts := count(text); r.size <= mostOfALog || counts {
			l.line(job, p.Name, container, secrets.Redact(text))
		} else if before <= mostOfALog {
			l.line(job, p.Name, container, "the rest of its log is left out")
		}
	}
}

// line writes a line of a log, without what looks like a secret.
func (l *logs) line(job, pod, container, text string) {
	text = redact.External(strings.TrimRight(text, "\r"))
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

// end waits until the logs of a Job that has ended are read, and returns their last lines. The
// error says that what a pod wrote which has succeeded was not read to its end.
func (l *logs) end(ctx context.Context, job string) ([]string, error) {
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
	var err error
	for _, r := range l.runs[job] {
		if r.needs && !r.whole {
			err = errors.New(cmp.Or(r.why, "its log was not read in time"))
		}
	}
	return slices.Clone(l.last[job]), err
}
