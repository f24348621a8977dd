package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// releaseLimit bounds Release; up to a third of it is spent waiting for a heartbeat.
const releaseLimit = 15 * time.Second

// Lease is the lock while it is held. It is safe for concurrent use.
type Lease struct {
	lock   *Lock
	record Record // without the heartbeat's time
	end    context.CancelCauseFunc
	expire *time.Timer // ends the lease unless a heartbeat is written in time

	stop    chan struct{}      // closed to stop the heartbeats
	stopped chan struct{}      // closed when they have stopped
	cancel  context.CancelFunc // of a heartbeat in flight

	once     sync.Once
	released error // result of release

	mu       sync.Mutex
	deadline time.Duration // by Options.Boot: the lease has expired then
	lost     error         // why the lease was lost; nil while it is held
	beatErr  error         // of the last heartbeat
}

// lease starts the heartbeats of r, which was created after started, boot by Options.Boot.
func (l *Lock) lease(ctx context.Context, r Record, started time.Time, boot time.Duration) (context.Context, *Lease) {
	ctx, end := context.WithCancelCause(ctx)
	le := &Lease{lock: l, record: r, end: end, stop: make(chan struct{}), stopped: make(chan struct{}), deadline: boot + r.ttl()}
	le.expire = time.AfterFunc(r.ttl(), le.expired)
	le.expire.Reset(time.Until(started.Add(r.ttl())))
	beats, cancel := context.WithCancel(context.WithoutCancel(ctx))
	le.cancel = cancel
	go le.beat(beats)
	return ctx, le
}

// beat renews the lease until it is lost or released.
func (l *Lease) beat(ctx context.Context) {
	defer close(l.stopped)
	every := l.record.every()
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
		}
		started, boot := time.Now(), l.lock.opts.Boot()
		err := l.renew(ctx)
		l.mu.Lock()
		gone := l.lost != nil
		if l.beatErr = err; err == nil && !gone {
			l.expire.Reset(time.Until(started.Add(l.record.ttl())))
			l.deadline = boot + l.record.ttl()
		}
		l.mu.Unlock()
		switch {
		case gone || isLost(err):
			l.lose(err)
			return
		case err != nil:
			t.Reset(every / 5)
		default:
			t.Reset(every)
		}
	}
}

// renew writes a heartbeat if the lock is still held.
func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.record.ttl())
	defer cancel()
	if err := l.checkOwn(ctx); err != nil {
		return err
	}
	if err := l.awake(); err != nil {
		return err
	}
	r := l.record
	r.Beat = l.lock.opts.Clock().UTC()
	if err := r.write(ctx, l.lock.store.Put); err != nil {
		return err
	}
	return l.checkHighest(ctx)
}

// awake fails if the machine was suspended for so long that the lease has expired, which its
// timer, standing still meanwhile, does not tell.
func (l *Lease) awake() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if late := l.lock.opts.Boot() - l.deadline; late > 0 {
		return lost("the last heartbeat was %s ago, and one is good for %s", (late + l.record.ttl()).Round(time.Second), l.record.ttl())
	}
	return nil
}

// checkOwn fails if the lease's record is no longer its own. A damaged record passes,
// as the next heartbeat rewrites it.
func (l *Lease) checkOwn(ctx context.Context) error {
	there, err := l.lock.read(ctx, l.record.Generation)
	switch {
	case damaged(err):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return lost("its record %s was removed from the store", key(l.record.Generation))
	case err != nil:
		return err
	case there.Token != l.record.Token:
		return lost("its record %s is of %s", key(l.record.Generation), there.Holder)
	}
	return nil
}

// checkHighest fails if there is a higher generation, naming the holder of the next.
func (l *Lease) checkHighest(ctx context.Context) error {
	n, err := l.lock.highest(ctx)
	if err != nil {
		return err
	}
	if n == l.record.Generation {
		return nil
	}
	if n < l.record.Generation {
		return lost("its record %s was removed from the store", key(l.record.Generation))
	}
	return l.lock.successor(ctx, l.record.Generation, n)
}

// successor is the fault of a generation that has lost the lock to the next, of which n is
// the highest.
func (l *Lock) successor(ctx context.Context, generation, n int64) error {
	next, err := l.read(ctx, generation+1)
	if err != nil {
		if next, err = l.read(ctx, n); err != nil {
			return lost("another run has taken it (%v)", err)
		}
	}
	at := next.Acquired.Format(time.RFC3339)
	if next.State == Forced {
		return lost("%s took it away at %s", next.Holder, at)
	}
	why := ""
	if next.After != nil {
		why = ", because " + next.After.Why
	}
	return lost("%s took it over at %s%s", next.Holder, at, why)
}

// expired ends the lease when no heartbeat was written in time: others may take
// the lock from now on.
func (l *Lease) expired() {
	l.mu.Lock()
	beatErr := l.beatErr
	l.mu.Unlock()
	why := ""
	if beatErr != nil {
		why = fmt.Sprintf(": %v", beatErr)
	}
	l.lose(lost("no heartbeat could be written within %s%s", l.record.ttl(), why))
}

// lose ends the lease; the first reason counts.
func (l *Lease) lose(err error) {
	l.mu.Lock()
	if l.lost == nil {
		l.lost = err
	}
	err = l.lost
	l.mu.Unlock()
	l.expire.Stop()
	l.end(err)
}

func (l *Lease) gone() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Check reads the store to verify that the lock is still held, before something that
// must not be done twice. If it is not, the lease is lost.
func (l *Lease) Check(ctx context.Context) error {
	if err := l.gone(); err != nil {
		return err
	}
	err := l.checkOwn(ctx)
	if err == nil {
		err = l.checkHighest(ctx)
	}
	if err == nil {
		err = l.awake()
	}
	if isLost(err) {
		l.lose(err)
	}
	if gone := l.gone(); gone != nil { // it may have expired meanwhile
		return gone
	}
	return err
}

// Release releases the lock and ends the lease's context. It works even if ctx has
// ended, and takes at most 15 s. If the lock had been lost, it returns that error.
// A second call returns the result of the first.
func (l *Lease) Release(ctx context.Context) error { return l.finish(ctx, true) }

// Leave ends the lease's context as Release does, but leaves the lock to expire, as after the
// end of the process: something may still work under it. The error says so, or that the lock
// had been lost.
func (l *Lease) Leave(ctx context.Context) error { return l.finish(ctx, false) }

func (l *Lease) finish(ctx context.Context, mark bool) error {
	l.once.Do(func() { l.released = l.release(ctx, mark) })
	return l.released
}

func (l *Lease) release(ctx context.Context, mark bool) error {
	defer l.end(nil)
	defer l.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	close(l.stop)
	select { // a heartbeat in flight must not arrive after the release
	case <-l.stopped:
	case <-time.After(releaseLimit / 3):
		l.cancel()
		<-l.stopped
	}
	err := errWorks
	for try := 0; mark && try < 3; try++ {
		if err = l.markReleased(ctx); err == nil || isLost(err) || pause(ctx, time.Duration(try+1)*l.record.every()/10) != nil {
			break
		}
	}
	l.expire.Stop()
	if gone := l.gone(); gone != nil {
		return gone
	}
	if err != nil {
		return notReleased(l.record, err)
	}
	return nil
}

// markReleased records that the lock is released, if it is still held.
func (l *Lease) markReleased(ctx context.Context) error {
	if err := l.Check(ctx); err != nil {
		return err
	}
	r := l.record
	r.State, r.Beat, r.Released = Released, l.lock.opts.Clock().UTC(), l.lock.opts.Clock().UTC()
	return r.write(ctx, l.lock.store.Put)
}
