package progress_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	preflight = pipeline.Key{Stage: "infrastructure", Name: "preflight"}
	terraform = pipeline.Key{Stage: "infrastructure", Name: "terraform"}
	node      = pipeline.Key{Stage: "infrastructure", Name: "node"}
	tls       = pipeline.Key{Stage: "preorchestrator", Name: "tls"}
	syncApps  = pipeline.Key{Stage: "orchestrator", Name: "sync"}
)

func graph() []pipeline.Node {
	return []pipeline.Node{
		{Key: preflight},
		{Key: terraform, Needs: []pipeline.Key{preflight}},
		{Key: node, Needs: []pipeline.Key{preflight}},
		{Key: tls, Needs: []pipeline.Key{preflight}},
		{Key: syncApps, Needs: []pipeline.Key{terraform, node, tls}},
	}
}

// run reports events to a screen.
type run struct {
	*progress.Screen
	started map[pipeline.Key]time.Time
}

func (r run) start(keys ...pipeline.Key) {
	for _, k := range keys {
		r.started[k] = time.Now()
		r.Observe(pipeline.Event{Time: time.Now(), Status: pipeline.Running,
			Result: pipeline.Result{Key: k, Status: pipeline.Running, Started: time.Now()}})
	}
}

func (r run) end(k pipeline.Key, status pipeline.Status, err error) {
	r.Observe(pipeline.Event{Time: time.Now(), Status: status,
		Result: pipeline.Result{Key: k, Status: status, Err: err, Started: r.started[k], Finished: time.Now()}})
}

// after lets time pass and the display catch up.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func open(t *testing.T, width, height int) (run, *screen) {
	term := newScreen(t, width, height)
	return run{progress.Open(term, progress.Options{Live: true, Color: true, Size: term.size}), map[pipeline.Key]time.Time{}}, term
}

// A complete run on a terminal, frame by frame.
func TestLive(t *testing.T) {
	for name, size := range map[string][2]int{"wide": {80, 12}, "narrow": {32, 12}, "low": {80, 4}, "tiny": {7, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, term := open(t, size[0], size[1])
				defer r.End()
				var story bytes.Buffer
				picture := func(d time.Duration, what string) {
					after(d)
					fmt.Fprintf(&story, "%s\n%s\n", what, term.shot())
				}
				r.Prepare()
				picture(1100*time.Millisecond, "the engine is being connected to")
				r.Begin(graph())
				r.start(preflight)
				picture(2*time.Second, "the first step runs")
				r.end(preflight, pipeline.Succeeded, nil)
				r.start(terraform, node, tls)
				r.Message("infrastructure/terraform: apply:\t3 of 5\x1b[1m")
				picture(3*time.Second, "three steps run")
				_, err := r.Write([]byte("slipway: stopping after the steps"))
				require.NoError(t, err)
				picture(time.Second, "half a line was written: it is not shown")
				_, err = r.Write([]byte(" that run now\nand a second li"))
				require.NoError(t, err)
				r.end(tls, pipeline.Reused, nil)
				r.Message("preorchestrator/tls: late")
				r.Message("elsewhere/unknown: shown as it is")
				picture(time.Second, "the line is whole, a step was reused")
				r.end(node, pipeline.Failed, errors.New("no space\nleft"))
				r.end(syncApps, pipeline.Blocked, &pipeline.BlockedError{By: []pipeline.Key{node}})
				picture(36*time.Second, "a step failed, another one takes its time")
				r.end(terraform, pipeline.Succeeded, nil)
				picture(time.Second, "all have ended")
				r.End()
				fmt.Fprintf(&story, "the end\n%s", term.shot())
				golden(t, "live-"+name+".txt", story.String())
				_, err = r.Write([]byte("straight on\n"))
				require.NoError(t, err)
				require.Contains(t, term.text(), "straight on")
			})
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run go test ./pipeline/progress -update if this change is meant")
}

// Nothing of the block stays behind, and nothing above it is lost, whatever the
// terminal's size becomes and however the terminal handles that.
func TestResize(t *testing.T) {
	for _, reflow := range []bool{true, false} {
		t.Run(fmt.Sprint("reflow ", reflow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, term := open(t, 70, 10)
				defer r.End()
				r.Begin(graph())
				var said []string
				r.start(terraform, node, tls)
				r.Message("infrastructure/node: a long story about what it does just now")
				for i, width := range []int{70, 33, 12, 50, 20, 90, 9, 70} {
					term.resize(width, 6+i%5, reflow)
					after(time.Second)
					line := fmt.Sprintf("line %d", i)
					_, err := fmt.Fprintln(r, line)
					require.NoError(t, err)
					said = append(said, line)
					after(time.Second)
					_, wrapped := term.count()
					require.Zero(t, wrapped, "lines of a block never wrap")
				}
				r.End()
				require.Equal(t, strings.Join(said, "\n"), term.text())
			})
		})
	}
}

func TestRedrawsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, term := open(t, 80, 24)
		defer r.End()
		r.Begin(graph())
		r.start(terraform)
		for i := range 10_000 {
			r.Message(fmt.Sprintf("infrastructure/terraform: %d", i))
			after(100 * time.Microsecond)
		}
		writes, _ := term.count()
		require.LessOrEqual(t, writes, 10, "in a second")
		before := writes
		after(10 * time.Second)
		writes, _ = term.count()
		require.LessOrEqual(t, writes-before, 11, "only the clock moves")
		r.End()
	})
}

// When a step panics, the output of the runtime does not end up in the block.
func TestEndBeforeAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, term := open(t, 80, 24)
		func() {
			defer func() { require.NotNil(t, recover()) }()
			defer r.End()
			r.Begin(graph())
			r.start(terraform)
			_, err := r.Write([]byte("without an end"))
			require.NoError(t, err)
			after(time.Second)
			require.Contains(t, term.text(), "infrastructure/terraform")
			panic("!")
		}()
		require.Equal(t, "without an end", term.text())
		r.End()
	})
}

func TestColours(t *testing.T) {
	for _, color := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			r := run{progress.Open(&out, progress.Options{Live: true, Color: color}), map[pipeline.Key]time.Time{}}
			defer r.End()
			r.Begin(graph())
			r.start(terraform, node, tls)
			r.end(terraform, pipeline.Failed, errors.New("no"))
			r.end(node, pipeline.Warned, errors.New("hm"))
			r.end(tls, pipeline.Succeeded, nil)
			r.End()
			if !color {
				require.NotContains(t, out.String(), "\x1b[3")
				return
			}
			require.Contains(t, out.String(), "\x1b[31minfrastructure/terraform: failed after 0.0s: no\x1b[0m\n")
			require.Contains(t, out.String(), "\x1b[33minfrastructure/node: warned after 0.0s: hm\x1b[0m\n")
			require.Contains(t, out.String(), "\npreorchestrator/tls: succeeded after 0.0s\n")
		})
	}
}

// A hook is not in the graph: it is shown while it runs, but not counted.
func TestBesideTheGraph(t *testing.T) {
	hook := pipeline.Key{Stage: "hooks", Name: "before/infrastructure/terraform"}
	synctest.Test(t, func(t *testing.T) {
		r, term := open(t, 80, 24)
		defer r.End()
		r.Begin(graph())
		r.start(hook, node)
		after(time.Second)
		require.Equal(t, "\n    1s  infrastructure/node\n    1s  hooks/before/infrastructure/terraform\n"+
			"0/5 done, 1s: infrastructure, hooks", term.text())
		r.end(hook, pipeline.Warned, errors.New("hm"))
		after(time.Second)
		require.Contains(t, term.text(), "hooks/before/infrastructure/terraform: warned after 1.0s: hm\n")
		require.Contains(t, term.text(), "0/5 done")
	})
}

// Statuses that this package does not know are final.
func TestUnknownStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, term := open(t, 80, 24)
		defer r.End()
		r.Begin(graph())
		r.end(tls, pipeline.Unselected, nil)
		r.end(syncApps, pipeline.Skipped, nil)
		r.start(terraform, node)
		r.end(node, "marvelled", errors.New("hm"))
		r.end(preflight, pipeline.Cancelled, pipeline.ErrStopped)
		after(time.Second)
		require.Contains(t, term.text(), "2/3 done, 1s: infrastructure")
		require.NotContains(t, term.text(), "tls")
		require.NotContains(t, term.text(), "preflight")
	})
}

func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &lines{}
		r := run{progress.Open(out, progress.Options{}), map[pipeline.Key]time.Time{}}
		defer r.End()
		r.Prepare()
		r.Begin(graph())
		r.start(preflight)
		after(29500 * time.Millisecond)
		r.end(preflight, pipeline.Succeeded, nil)
		r.start(terraform, node)
		r.Message("infrastructure/terraform: apply")
		after(40 * time.Second)
		r.end(node, pipeline.Failed, errors.New("no"))
		_, err := r.Write([]byte("slipway: half"))
		require.NoError(t, err)
		_, err = r.Write([]byte(" a line\n"))
		require.NoError(t, err)
		after(59 * time.Second)
		r.end(terraform, pipeline.Succeeded, nil)
		after(time.Minute)
		r.End()
		r.End()
		require.Equal(t, `infrastructure/preflight: running
infrastructure/preflight: succeeded after 30s
infrastructure/terraform: running
infrastructure/node: running
     infrastructure/terraform: apply
infrastructure/terraform: running for 30s
infrastructure/node: running for 30s
infrastructure/node: failed after 40s: no
slipway: half a line
infrastructure/terraform: running for 1m00s
infrastructure/terraform: running for 1m30s
infrastructure/terraform: succeeded after 1m39s
`, out.String())
	})
}

// Without a run the screen is the stream: `slipway status`.
func TestNoRun(t *testing.T) {
	var out bytes.Buffer
	s := progress.Open(&out, progress.Options{Live: true})
	s.Message("infrastructure/node: waits")
	_, err := s.Write([]byte("error"))
	require.NoError(t, err)
	s.Plain()
	s.End()
	require.Equal(t, "     infrastructure/node: waits\nerror", out.String())
}

// Everything at the same time, for the race detector; and no line is lost.
func TestConcurrency(t *testing.T) {
	term := newScreen(t, 80, 24)
	r := run{progress.Open(term, progress.Options{Live: true, Size: term.size}), map[pipeline.Key]time.Time{}}
	r.Begin(graph())
	r.start(terraform, node)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 200 {
				r.Message("infrastructure/terraform: hello")
				_, _ = fmt.Fprintf(r, "<%d.%d>\n", i, j)
			}
		})
	}
	all.Wait()
	all.Go(r.End)
	all.Go(r.End)
	all.Wait()
	r.End()
	require.Equal(t, 8*200, strings.Count(term.text(), "<"))
}

// lines is a buffer for several goroutines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
