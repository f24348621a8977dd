package lock_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// contest is a race of many contenders for one lock, each of which increments a
// counter while holding it.
type contest struct {
	// Store returns the store that a contender accesses the lock through.
	Store func(contender int) lock.Store
	// Counter holds the counter.
	Counter    *store.Store
	Contenders int // 0 is 50
	Options    lock.Options
	// Pause is how long a contender waits before it tries again.
	Pause time.Duration
	// Work is how long it holds the lock.
	Work time.Duration
	// Tolerated reports whether a contender tries again after an error; nil: never.
	Tolerated func(error) bool
}

// contend runs the race and fails the test when an increment is lost or two hold
// the lock at once.
func contend(t *testing.T, c contest) {
	t.Helper()
	if c.Contenders == 0 {
		c.Contenders = 50
	}
	if c.Tolerated == nil {
		c.Tolerated = func(error) bool { return false }
	}
	c.Options.Boot = newMachine().boot // as fast as the clock of the test
	var inside atomic.Int32
	var wg sync.WaitGroup
	for i := range c.Contenders {
		wg.Go(func() {
			l := lock.New(c.Store(i), c.Options)
			who := lock.Holder{User: fmt.Sprintf("user-%d", i), Host: "host", Run: fmt.Sprintf("run-%d", i)}
			for done := false; !done && !t.Failed(); {
				ctx, lease, err := l.Acquire(t.Context(), who)
				if err == nil {
					done, err = c.increment(ctx, &inside)
					if e := lease.Release(t.Context()); e != nil && !c.Tolerated(e) {
						err = errors.Join(err, e)
					}
				}
				switch {
				case err == nil:
				case fault.ClassOf(err) == fault.Locked, c.Tolerated(err):
					time.Sleep(c.Pause/2 + rand.N(c.Pause))
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := c.Counter.Get(t.Context(), "counter")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(c.Contenders), string(data), "increments")
}

// increment adds one to the counter, with the context of the lock, and reports whether
// it did.
func (c contest) increment(ctx context.Context, inside *atomic.Int32) (bool, error) {
	if n := inside.Add(1); n != 1 {
		return false, fmt.Errorf("%d hold the lock at once", n)
	}
	defer inside.Add(-1)
	n := 0
	data, err := c.Counter.Get(ctx, "counter")
	if err == nil {
		n, err = strconv.Atoi(string(data))
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return false, err
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(c.Work):
	}
	return true, c.Counter.Put(ctx, "counter", []byte(strconv.Itoa(n+1)))
}
