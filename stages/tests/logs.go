package tests

import (
	"bufio"
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
	"github.com/slipway-sh/slipway/stages/internal/readiness"
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

	mu  sync.Mutex // of out as well, so that no lines are mixed
	out io.Writer
}

func newLogs(ctx context.Context, client *kube.Client, out io.Writer, counts func(name string, n int64)) *logs {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is written at the end is read, too
	return &logs{client: client, counts: counts, ctx: func() context.Context { return ctx }, close: cancel, out: out}
}

// jobLog is what the containers of one Job write.
type jobLog struct {
	*logs
	busy sync.WaitGroup
	runs map[string]*reading // by container and run of it
	last []string            // lines
}

// reading is how far the log of one run of a container is read.
type reading struct {
	busy   bool  // it is being read
	whole  bool  // it was, to its end
	needed bool  // its pod has succeeded: what it counts counts
	err    error // why it could not be read
	lines  int   // that are written
	size   int   // of these, in bytes
}

func (l *logs) job() *jobLog { return &jobLog{logs: l, runs: map[string]*reading{}} }

// follow reads the logs of all containers of the Job's pods that have begun, each run once, and
// those again that could not be read.
func (j *jobLog) follow(pods []corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range pods {
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if c.RestartCount > 0 {
				j.start(p, c.Name, c.RestartCount-1, true)
			}
			if c.State.Running != nil || c.State.Terminated != nil {
				j.start(p, c.Name, c.RestartCount, false)
			}
		}
	}
}

// start reads the log of one run of a container, unless it is read already. That of a previous
// run is tried once: it may be gone.
func (j *jobLog) start(p corev1.Pod, container string, run int32, previous bool) {
	id := fmt.Sprintf("%s/%s/%d", p.UID, container, run)
	r := j.runs[id]
	if r == nil {
		r = &reading{}
		j.runs[id] = r
	}
	r.needed = !previous && p.Status.Phase == corev1.PodSucceeded
	if r.busy || r.whole || previous && r.err != nil {
		return
	}
	r.busy = true
	j.busy.Go(func() {
		err := j.read(p, container, previous, r)
		if err != nil {
			err = fmt.Errorf("its log cannot be read: %w", err)
		}
		j.mu.Lock()
		known := err == nil || r.err != nil && r.err.Error() == err.Error()
		r.busy, r.whole, r.err = false, err == nil, err
		j.mu.Unlock()
		if !known {
			j.line(p.Name, container, err.Error())
		}
	})
}

// read writes the lines of the log of one run of a container after those that are written.
func (j *jobLog) read(p corev1.Pod, container string, previous bool, r *reading) error {
	secrets, err := readiness.SecretsOf(j.ctx(), j.client, &p)
	if err != nil {
		return err
	}
	o := &corev1.PodLogOptions{Container: container, Previous: previous, Follow: !previous}
	stream, err := j.client.Kubernetes.CoreV1().Pods(p.Namespace).GetLogs(p.Name, o).Stream(j.ctx())
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
			r.lines = max(0, r.lines-1) // the last one may have been a part
			return err
		case n < r.lines:
			continue
		}
		r.lines, r.size = r.lines+1, r.size+len(text)+1
		if _, _, counts := count(text); r.size <= mostOfALog || counts {
			j.line(p.Name, container, secrets.Redact(text))
		} else if r.size-len(text)-1 <= mostOfALog {
			j.line(p.Name, container, "the rest of its log is left out")
		}
	}
}

// line writes a line of a log, without what looks like a secret.
func (j *jobLog) line(pod, container, text string) {
	text = redact.External(strings.TrimRight(text, "\r"))
	if name, n, is := count(text); is {
		j.counts(name, n)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%s/%s: %s\n", pod, container, text)
	if strings.TrimSpace(text) != "" {
		j.last = append(j.last, text)
		j.last = j.last[max(0, len(j.last)-lastLines):]
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

// end waits until the logs are read or ctx ends, and returns their last lines. The error says that
// what a pod wrote which has succeeded was not read to its end.
func (j *jobLog) end(ctx context.Context) ([]string, error) {
	done := make(chan struct{})
	go func() {
		j.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	for _, r := range j.runs {
		if r.needed && !r.whole {
			err = r.err
			if err == nil {
				err = errors.New("its log was not read in time")
			}
		}
	}
	return slices.Clone(j.last), err
}
