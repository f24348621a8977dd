package build

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// every is the time between the lines of a task in which nothing changes.
const every = 15 * time.Second

// Reporter numbers the tasks of one job, and prints a line per change and per 15 s of long work.
// Safe for concurrent use.
type Reporter struct {
	w     io.Writer
	total int
	began time.Time

	mu   sync.Mutex
	next int
}

// NewReporter reports on a job of total tasks to w; of 0, it numbers none.
func NewReporter(w io.Writer, total int) *Reporter {
	return &Reporter{w: w, total: total, began: time.Now()}
}

// Do runs the next task: name says what it is about ("kubernetes v1.35.4"), doing what happens
// ("building"). do reports whether there was nothing to do, and says what changes, such as
// "waiting for process 12".
func (r *Reporter) Do(name, doing string, do func(say func(doing string)) (unchanged bool, err error)) error {
	began, ended := time.Now(), make(chan struct{})
	print := func(text string) { fmt.Fprintf(r.w, "%s: %s\n", name, text) } // the caller has the lock
	r.mu.Lock()
	if r.next++; r.total > 0 {
		name = fmt.Sprintf("[%d/%d] %s", r.next, r.total, name)
	}
	r.mu.Unlock()
	var heartbeat sync.WaitGroup
	heartbeat.Go(func() {
		for tick := time.NewTicker(every); ; {
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
				r.mu.Lock()
				print(doing + " … " + round(time.Since(began)))
				r.mu.Unlock()
			}
		}
	})
	unchanged, err := do(func(now string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		doing = now
		print(doing + " …")
	})
	close(ended)
	heartbeat.Wait()
	outcome := "done"
	switch {
	case err != nil:
		outcome = "failed"
	case unchanged:
		outcome = "unchanged"
	}
	if took := time.Since(began); took >= 100*time.Millisecond {
		outcome += " in " + round(took)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	print(outcome)
	return err
}

// Finish prints the time of all tasks.
func (r *Reporter) Finish(what string) {
	fmt.Fprintf(r.w, "%s (took %s)\n", what, round(time.Since(r.began)))
}

// round writes a duration the way people say it: 0.4s, 12s, 1m20s, 1h5m0s.
func round(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
