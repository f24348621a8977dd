// Package progress tells a person what is being built, how far that is and how
// long it has taken: one line per change and per 15 s of long work, or a line
// that is rewritten in place on a terminal.
package progress

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"time"
)

// Reporter numbers the tasks of one job. Safe for concurrent use.
type Reporter struct {
	w       io.Writer
	total   int
	inPlace bool
	every   time.Duration // between lines of one task
	began   time.Time

	mu      sync.Mutex
	next    int
	open    bool // a line on the terminal waits to be rewritten
	results map[string]int
	order   []string
	sizes   map[string]int // of the tasks that have not ended, by name
	done    int            // the size of those that were worked on
}

// Expect sets the sizes of tasks by name, in any unit that grows with the time that a task takes.
// From the tasks that have ended, the reporter estimates the remaining time. A task without a size
// does not count. Call Expect before the first Start.
func (r *Reporter) Expect(sizes map[string]int) { r.sizes = maps.Clone(sizes) }

// left estimates how long the remaining tasks take; zero: unknown, or less than a minute.
func (r *Reporter) left(ended, outcome string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if outcome != Unchanged {
		r.done += r.sizes[ended]
	}
	delete(r.sizes, ended)
	open := 0
	for _, size := range r.sizes {
		open += size
	}
	elapsed := time.Since(r.began)
	if r.done == 0 || elapsed < time.Minute {
		return 0
	}
	return (elapsed * time.Duration(open) / time.Duration(r.done)).Round(time.Minute)
}

// Unchanged is the outcome of a task in which there was nothing to do.
const Unchanged = "unchanged"

// New reports on a job of total tasks to w; inPlace rewrites the current line, as
// fits a terminal.
func New(w io.Writer, total int, inPlace bool) *Reporter {
	every := 15 * time.Second
	if inPlace {
		every = time.Second
	}
	return &Reporter{w: w, total: total, inPlace: inPlace, every: every, began: time.Now(), results: map[string]int{}}
}

// ForStderr reports to standard error, in place when that is a terminal and
// not the log of a CI system.
func ForStderr(total int) *Reporter {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	term := os.Getenv("TERM")
	return New(os.Stderr, total, terminal && os.Getenv("CI") == "" && term != "" && term != "dumb")
}

// Task is one numbered piece of work. Safe for concurrent use.
type Task struct {
	r     *Reporter
	n     int
	name  string
	began time.Time
	stop  chan struct{}
	once  sync.Once

	mu    sync.Mutex
	doing string
}

// Start begins the next task: name says what it is about ("kubernetes
// v1.35.4"), doing what happens ("building").
func (r *Reporter) Start(name, doing string) *Task {
	r.mu.Lock()
	r.next++
	t := &Task{r: r, n: r.next, name: name, doing: doing, began: time.Now(), stop: make(chan struct{})}
	r.mu.Unlock()
	if r.inPlace {
		r.print(t.line(doing+" …"), true)
	}
	go t.heartbeat()
	return t
}

func (t *Task) heartbeat() {
	tick := time.NewTicker(t.r.every)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			t.mu.Lock()
			doing := t.doing
			t.mu.Unlock()
			t.r.print(t.line(doing+" … "+Round(time.Since(t.began))), true)
		}
	}
}

// Say changes what the task does, such as "waiting for process 12".
func (t *Task) Say(doing string) {
	t.mu.Lock()
	t.doing = doing
	t.mu.Unlock()
	t.r.print(t.line(doing+" …"), true)
}

// Done ends the task; outcome is one word or two, such as "built" or
// "unchanged", that Finish counts.
func (t *Task) Done(outcome string) {
	t.once.Do(func() {
		close(t.stop)
		text := outcome
		if took := time.Since(t.began); took >= 100*time.Millisecond {
			text += " in " + Round(took)
		}
		if left := t.r.left(t.name, outcome); left > 0 {
			text += fmt.Sprintf("; about %d min left", int(left.Minutes()))
		}
		t.r.print(t.line(text), false)
		t.r.mu.Lock()
		defer t.r.mu.Unlock()
		if t.r.results[outcome] == 0 {
			t.r.order = append(t.r.order, outcome)
		}
		t.r.results[outcome]++
	})
}

// Fail ends the task as failed. The error itself is for whoever gets it.
func (t *Task) Fail() { t.Done("failed") }

func (t *Task) line(text string) string {
	if t.r.total == 0 {
		return t.name + ": " + text
	}
	return fmt.Sprintf("[%d/%d] %s: %s", t.n, t.r.total, t.name, text)
}

// Finish prints the totals: how many tasks ended how, and the time of all.
func (r *Reporter) Finish(what string) {
	r.mu.Lock()
	var parts []string
	for _, outcome := range r.order {
		parts = append(parts, fmt.Sprintf("%d %s", r.results[outcome], outcome))
	}
	r.mu.Unlock()
	r.print(fmt.Sprintf("%s: %s in %s", what, strings.Join(parts, ", "), Round(time.Since(r.began))), false)
}

// print writes a line; one that is passing is rewritten by the next in place.
func (r *Reporter) print(line string, passing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.inPlace {
		fmt.Fprintln(r.w, line)
		return
	}
	end := "\n"
	if passing {
		end = ""
	}
	clear := ""
	if r.open {
		clear = "\r\x1b[K"
	}
	fmt.Fprint(r.w, clear+line+end)
	r.open = passing
}

// Round writes a duration the way people say it: 0.4s, 12s, 1m20s, 1h5m.
func Round(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}
