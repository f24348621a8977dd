package render

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/slipway-sh/slipway/stages/contract"
)

// errDone is the answer to work that was abandoned while it rendered.
var errDone = errors.New("nobody waits for what is rendered any more")

// limits are what rendering may take.
type limits struct {
	time   time.Duration
	memory uint64 // bytes that the program may have more of than at the start
}

// The largest public charts take seconds and some 200 MiB.
func usualLimits() limits { return limits{time: time.Minute, memory: 1 << 30} }

// sampleEvery is how often memory is looked at while something renders.
const sampleEvery = 20 * time.Millisecond

// Bound does work that renders what a release's author wrote, which may never end or take all
// memory. It returns when ctx ends or rendering goes beyond its limits, and then work goes on by
// itself. Work that does more than render calls rendered between the two: it fails if work was
// abandoned, and from then on only work's own context ends it.
func Bound[T any](ctx context.Context, work func(rendered func() error) (T, error)) (T, error) {
	return bound(ctx, usualLimits(), work)
}

// alone is Bound for work that does nothing but render.
func alone[T any](ctx context.Context, work func() (T, error)) (T, error) {
	return Bound(ctx, func(func() error) (T, error) { return work() })
}

// What a piece of work is in.
const (
	rendering int32 = iota
	pastRendering
	abandoned
)

func bound[T any](ctx context.Context, most limits, work func(rendered func() error) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	var state atomic.Int32
	rendered := func() error {
		if !state.CompareAndSwap(rendering, pastRendering) && state.Load() == abandoned {
			return errDone
		}
		return nil
	}
	before := memoryInUse()
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r = result{err: fmt.Errorf("panic: %v", p)}
			}
			done <- r
		}()
		r.value, r.err = work(rendered)
	}()
	end := time.NewTimer(most.time)
	defer end.Stop()
	sample := time.NewTicker(sampleEvery)
	defer sample.Stop()
	for {
		var why error
		select {
		case r := <-done:
			return r.value, r.err
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-end.C:
			why = fmt.Errorf("%w: it takes longer than %s", contract.ErrAbandoned, most.time)
		case <-sample.C:
			if now := memoryInUse(); now < before || now-before <= most.memory {
				continue
			}
			why = fmt.Errorf("%w: it takes more than %d MiB of memory", contract.ErrAbandoned, most.memory>>20)
		}
		if !state.CompareAndSwap(rendering, abandoned) {
			r := <-done
			return r.value, r.err
		}
		return none, why
	}
}

// memoryInUse is what the program has of the system's memory, in bytes.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
