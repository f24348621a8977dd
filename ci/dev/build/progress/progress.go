// Package progress tells a person what is being built, how far that is and how long it has taken:
// one line per change and per 15 s of long work.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// every is the time between the lines of a task in which nothing changes.
const every = 15 * time.Second

// Reporter numbers the tasks of one job. Safe for concurrent use.
type Reporter struct {
	w     io.Writer
	total int
	began time.Time

	mu   sync.Mutex
	next int
}

// New reports on a job of total tasks to w.
func New(w io.Writer, total int) *Reporter {
	return &Reporter{w: w, total: total, began: time.Now()}
}

// Unchanged is the outcome of a task in which there was nothing to do.
const Unchanged = "unchanged"

// Task is one numbered piece of work. Safe for concurrent use.
type Task struct {
	r     *Reporter
	n     int
	name  string
	began time.Time
	tick  *time.Ticker
	ended chan struct{}

	// Guarded by r.mu.
	doing string
	over  bool
}

// Start begins the next task: name says what it is about ("kubernetes v1.35.4"), doing what
// happens ("building").
func (r *Reporter) Start(name, doing string) *Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	t := &Task{r: r, n: r.next, name: name, doing: doing, began: time.Now(), tick: time.NewTicker(every), ended: make(chan struct{})}
	go t.heartbeat()
	return t
}

func (t *Task) heartbeat() {
	for {
		select {
		case <-t.ended:
			return
		case <-t.tick.C:
			t.r.mu.Lock()
			if !t.over {
				t.print(t.doing + " … " + round(time.Since(t.began)))
			}
			t.r.mu.Unlock()
		}
	}
}

// Say changes what the task does, such as "waiting for process 12".
func (t *Task) Say(doing string) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.doing = doing
	t.print(doing + " …")
}

// Done ends the task; outcome is one word or two, such as "built" or "unchanged". Only the first
// call counts.
func (t *Task) Done(outcome string) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	t.tick.Stop()
	close(t.ended)
	text := outcome
	if took := time.Since(t.began); took >= 100*time.Millisecond {
		text += " in " + round(took)
	}
	t.print(text)
}

// Fail ends the task as failed. The error itself is for whoever gets it.
func (t *Task) Fail() { t.Done("failed") }

func (t *Task) print(text string) {
	number := ""
	if t.r.total > 0 {
		number = fmt.Sprintf("[%d/%d] ", t.n, t.r.total)
	}
	fmt.Fprintf(t.r.w, "%s%s: %s\n", number, t.name, text)
}

// Finish prints the time of all tasks.
func (r *Reporter) Finish(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "%s (took %s)\n", what, round(time.Since(r.began)))
}

// round writes a duration the way people say it: 0.4s, 12s, 1m20s, 1h5m0s.
func round(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
