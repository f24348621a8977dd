package lock

import (
	"context"
	"sync"
	"time"
)

// releaseLimit bounds Release; up to a third of it is spent waiting for a heartbeat.
const releaseLimit = 15 * time.Second

// Lease is the lock while it is held: a watch that writes the heartbeats, too. It is safe for
// concurrent use.
type Lease struct {
	watch *Watch

	once     sync.Once
	released error // result of release
}

// lease starts the heartbeats of r, which was created after boot, by Options.Boot.
func (l *Lock) lease(ctx context.Context, r Record, boot time.Duration) (context.Context, *Lease) {
	w := &Watch{lock: l, run: r.Holder.Run, record: r, beats: true, confirmed: boot, certain: boot}
	return w.start(ctx), &Lease{watch: w}
}

// Check reads the store to verify that the lock is still held, before something that
// must not be done twice. If it is not, the lease is lost.
func (l *Lease) Check(ctx context.Context) error {
	w := l.watch
	if err := w.loss(); err != nil {
		return err
	}
	err := w.read(ctx, w.lock.opts.Boot())
	if isLost(err) {
		return w.lose(err)
	}
	if lost := w.loss(); lost != nil { // it may have expired meanwhile
		return lost
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
	w := l.watch
	defer w.end(nil)
	defer w.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	w.quit()
	idle := make(chan struct{})
	go func() {
		<-w.ended
		w.looks.Wait()
		close(idle)
	}()
	select { // a heartbeat in flight must not arrive after the release
	case <-idle:
	case <-time.After(releaseLimit / 3):
		w.cancel()
		<-idle
	}
	err := errWorks
	for try := 0; mark && try < 3; try++ {
		if err = l.markReleased(ctx); err == nil || isLost(err) || pause(ctx, time.Duration(try+1)*w.record.every()/10) != nil {
			break
		}
	}
	if lost := w.loss(); lost != nil {
		return lost
	}
	if err != nil {
		return notReleased(w.record, err)
	}
	return nil
}

// markReleased records that the lock is released, if it is still held.
func (l *Lease) markReleased(ctx context.Context) error {
	if err := l.Check(ctx); err != nil {
		return err
	}
	r, now := l.watch.record, l.watch.lock.opts.Clock().UTC()
	r.State, r.Beat, r.Released = Released, now, now
	return r.write(ctx, l.watch.lock.store.Put)
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
