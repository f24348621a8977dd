package kubetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Work returns a context of a watch of the lock, and what suspends the machine for so long
// that another run may have the lock when it wakes up.
func Work(t testing.TB) (ctx context.Context, sleep func()) {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var boot atomic.Int64
	l := lock.New(s, lock.Options{Boot: func() time.Duration { return time.Duration(boot.Load()) }})
	_, lease, err := l.Acquire(t.Context(), lock.Holder{User: "u", Host: "h", Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, watch, err := l.Watch(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		watch.Stop()
		_ = lease.Release(context.WithoutCancel(ctx)) // it may be lost
	})
	return ctx, func() { boot.Add(int64(time.Hour)) }
}
