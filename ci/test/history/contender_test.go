package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/ci/test/s3/gateway/gatewaytest"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// settings are what all contenders have in common.
type settings struct {
	Beat, TTL, Grace time.Duration
	Pause            time.Duration // between two tries to take the lock
	Flaw             flaw
}

// over is how long after a holder's last sign of life another one may take its lock.
func (s settings) over() time.Duration { return s.TTL + s.Beat + s.Grace }

// description says who a contender is.
type description struct {
	Settings   settings
	Name       string
	Hold, Work string // URLs of the deployment's store
	Skew       time.Duration
	Seed       uint64
	Dir        string // of its log
}

// contend lets the contender contend until ctx ends.
func (d description) contend(ctx context.Context) (err error) {
	c := &contender{settings: d.Settings, name: d.Name, skew: d.Skew, rand: rand.New(rand.NewPCG(d.Seed, 0))}
	if c.hold, err = gatewaytest.Open(ctx, d.Hold); err != nil {
		return err
	}
	if c.work, err = gatewaytest.Open(ctx, d.Work); err != nil {
		return err
	}
	if c.log, err = history.Create(d.Dir, d.Name); err != nil {
		return err
	}
	c.contend(ctx)
	return errors.Join(c.log.Close(), c.hold.Close(), c.work.Close())
}

// contender takes the lock again and again, and works under it, as runs of a machine do.
type contender struct {
	settings
	name string
	hold *store.Store // through which it holds the lock
	work *store.Store // through which the steps of its runs work
	skew time.Duration
	log  *history.Log
	rand *rand.Rand

	options lock.Options
	lock    *lock.Lock
	created *creations // by which it takes the lock
}

// note adds an event to the history, which is worth nothing without it.
func (c *contender) note(e history.Event) {
	if err := c.log.Add(e); err != nil {
		panic(err)
	}
}

// contend goes on until ctx ends, and then leaves everything as it is.
func (c *contender) contend(ctx context.Context) {
	c.options = lock.Options{
		Beat: c.Beat, TTL: c.TTL, Grace: c.Grace,
		Clock: func() time.Time { return time.Now().Add(c.skew) },
	}
	if c.Flaw == hasty {
		c.options.Gone = func(lock.Holder) (func(), bool) { return func() {}, true }
	}
	c.created = &creations{Store: c.hold}
	c.lock = lock.New(c.created, c.options)
	for turn := 1; ctx.Err() == nil; turn++ {
		c.read(ctx)
		c.turn(ctx, fmt.Sprintf("%s-%d", c.name, turn))
		sleep(ctx, c.Pause/2+rand.N(c.Pause))
	}
}

// turn tries to take the lock for a run, and works if it gets it.
func (c *contender) turn(ctx context.Context, run string) {
	taking, giveUp := context.WithCancel(ctx)
	defer giveUp()
	limit := time.AfterFunc(2*c.over(), giveUp)
	e := history.Event{Op: history.Take, Run: run, Call: history.Now()}
	held, lease, err := c.lock.Acquire(taking, lock.Holder{User: c.name, Host: "host", Run: run})
	if err != nil {
		return
	}
	limit.Stop()
	e.Return, e.Generation, e.Token = history.Now(), c.created.last.Generation, c.created.last.Token
	c.note(e)
	defer c.noteLoss(held, e.Generation)

	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w := worker{contender: c, run: run, view: lock.New(c.work, c.options)}
		w.work(working)
	}()
	select {
	case <-ended:
	case <-time.After(time.Duration(1+c.rand.IntN(6)) * c.TTL / 4):
	}
	switch fate := c.rand.Float64(); {
	case fate < 0.3 || c.Flaw != "": // its holder is killed
		_ = lease.Leave(ctx) // what it says is known
	case fate < 0.4: // all of it is
		stop()
		_ = lease.Leave(ctx)
	default:
		stop()
		<-ended // what works has ended before the lock is released
		release := history.Event{Op: history.Release, Generation: e.Generation, Call: history.Now()}
		if err := lease.Release(ctx); err == nil {
			release.Return = history.Now()
			c.note(release)
		}
	}
	<-ended
}

// creations is a store that remembers the record of the lock that was created last. It is for
// one contender, which takes the lock once at a time.
type creations struct {
	*store.Store
	last lock.Record
}

func (c *creations) Create(ctx context.Context, key string, data []byte) error {
	if !strings.HasPrefix(key, "lock/history/") {
		c.last = lock.Record{}
		if err := seal.Open(data, "lock", 1, &c.last); err != nil {
			panic(err)
		}
	}
	return c.Store.Create(ctx, key, data)
}

// noteLoss notes why the lock was lost, if it was, of which ctx is.
func (c *contender) noteLoss(ctx context.Context, generation int64) {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		now := history.Now()
		c.note(history.Event{Op: history.Lose, Generation: generation, Call: now, Return: now, Error: code(cause)})
	}
}

// code is how an error is noted.
func code(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return string(f.Code)
	}
	return err.Error()
}

// read reads the register.
func (c *contender) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.over())
	defer cancel()
	e := history.Event{Op: history.Read, Call: history.Now()}
	v, err := readRegister(ctx, c.work)
	if err != nil {
		return
	}
	e.Return, e.Generation, e.N = history.Now(), v.Generation, v.N
	c.note(e)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
