package bounded

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// ErrAbandoned: work on what others wrote took more than anyone's needs. Nothing ends a template
// that runs, so it still does: the program has to end.
var ErrAbandoned = errors.New("rendering was stopped")

// Limits are what work may take.
type Limits struct {
	Time   time.Duration
	Memory uint64 // bytes that the program may have more of than at the start
}

// Usual are the limits of rendering. The largest public charts take seconds and some 200 MiB.
func Usual() Limits { return Limits{Time: time.Minute, Memory: 1 << 30} }

// sampleEvery is how often memory is looked at while something renders.
const sampleEvery = 20 * time.Millisecond

// Work does work on what others wrote, such as templates, which may never end or take all memory.
// A panic is an error. It returns when ctx ends or work goes beyond its limits, and then work goes
// on by itself.
func Work[T any](ctx context.Context, most Limits, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
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
		r.value, r.err = work()
	}()
	end := time.NewTimer(most.Time)
	defer end.Stop()
	sample := time.NewTicker(sampleEvery)
	defer sample.Stop()
	for {
		select {
		case r := <-done:
			return r.value, r.err
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case <-end.C:
			return none, fmt.Errorf("%w: it takes longer than %s", ErrAbandoned, most.Time)
		case <-sample.C:
			switch now := memoryInUse(); {
			case stacks() > maxStacks:
				return none, fmt.Errorf("%w: it calls itself without end", ErrAbandoned)
			case now > before && now-before > most.Memory:
				return none, fmt.Errorf("%w: it takes more than %d MiB of memory", ErrAbandoned, most.Memory>>20)
			}
		}
	}
}

// maxStacks is what all stacks may take together, in bytes. When one alone needs more than 512 MiB,
// Go ends the program, and nothing recovers from that.
const maxStacks = 128 << 20

// stacks is what all stacks take, in bytes.
func stacks() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// memoryInUse is what the program has of the system's memory, in bytes.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
