package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/versions"
)

// deployment is the journal's; steps are those that its runs make attempts at.
const (
	deployment = "demo"
	stage      = "stage"
	steps      = 3
)

// registered is the value of the register.
type registered struct {
	Generation int64
	N          int
}

func theRegister() versions.Value { return versions.Value{Prefix: "register/", Suffix: ".json"} }

// readRegister reads the register as whoever wants to know a value does; the zero value is none.
func readRegister(ctx context.Context, s versions.Reader) (v registered, err error) {
	data, _, err := theRegister().Newest(ctx, s)
	if errors.Is(err, fs.ErrNotExist) {
		return registered{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	return v, err
}

// worker works for a run, as its steps do: it watches the lock, writes only while the run has
// it, and asks Guard before each request. One that has lost the lock goes on as long as
// anything lets it.
type worker struct {
	*contender
	run        string
	view       *lock.Lock // through the store that its steps have
	generation int64
	fenced     *store.Store
	watched    context.Context
}

// work goes on until ctx ends, or a while after the lock is lost.
func (w *worker) work(ctx context.Context) {
	watched, watch, err := w.view.Watch(ctx, w.run)
	if err != nil {
		return
	}
	defer watch.Stop()
	w.watched, w.generation = watched, watch.Record().Generation
	defer w.noteLoss(watched, w.generation)
	w.fenced = w.contender.work.Fenced(func(ctx context.Context) error {
		if w.Flaw == unfenced || w.Flaw == unversioned {
			return nil
		}
		_, err := w.view.HeldBy(ctx, w.run)
		return err
	})
	refused, requests := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(requests)
		w.requests(ctx, refused)
	}()
	for n := 1; ctx.Err() == nil; n++ {
		w.write(ctx, n)
		w.attempt(ctx, n)
		w.read(ctx)
		select {
		case <-refused: // a while ago: nothing lets it go on
			<-requests
			return
		default:
			sleep(ctx, rand.N(w.Beat))
		}
	}
	<-requests
}

// requests asks Guard often, as before requests to a cluster, and goes on for a while once it
// refuses.
func (w *worker) requests(ctx context.Context, refused chan<- struct{}) {
	defer close(refused)
	var since time.Time
	for ctx.Err() == nil && (since.IsZero() || time.Since(since) < w.TTL) {
		e := history.Event{Op: history.Guard, Generation: w.generation, Call: history.Now()}
		if err := lock.Guard(w.watched); err == nil {
			e.Return = history.Now()
			w.note(e)
		} else if since.IsZero() {
			since = time.Now()
		}
		sleep(ctx, w.Beat/10)
	}
}

// bounded is for one operation, which may be the last that a run does after it has lost the
// lock.
func (w *worker) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.over())
}

// write writes the register.
func (w *worker) write(ctx context.Context, n int) {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	data, err := json.Marshal(registered{w.generation, n})
	if err != nil {
		panic(err)
	}
	key := w.generation
	if w.Flaw == unversioned {
		key = 0
	}
	e := history.Event{Op: history.Write, Generation: w.generation, N: n, Call: history.Now()}
	w.note(e)
	if err := theRegister().Put(ctx, w.fenced, key, data); err != nil {
		e.Error = code(err)
	}
	e.Return = history.Now()
	w.note(e)
}

// attempt makes an attempt at a step.
func (w *worker) attempt(ctx context.Context, n int) {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	s := journal.Store(w.contender.work)
	if w.Flaw == forgetful {
		s = forgets{s}
	}
	ledger := journal.On(s, deployment).Under(w.generation, w.fenced)
	e := history.Event{Op: history.End, Generation: w.generation, Run: w.run, Step: fmt.Sprintf("step-%d", 1+n%steps), N: n}
	a, err := ledger.Begin(ctx, w.run, stage, e.Step, journal.Digests{})
	if err != nil {
		return
	}
	output, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	e.Call = history.Now()
	if err := ledger.End(ctx, a, output, nil); err != nil {
		return
	}
	e.Return = history.Now()
	w.note(e)
}
