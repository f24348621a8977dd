package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// errInjected is the error that a faulty store injects.
var errInjected = errors.New("injected error")

// faults set how often operations go wrong: each is a probability from 0 to 1.
type faults struct {
	Seed       uint64
	Error      float64       // nothing is done, and the caller gets errInjected
	LostReply  float64       // it is done, but the caller gets errInjected
	Torn       float64       // writes only: half of the value is written, and the caller gets errInjected
	SilentTorn float64       // writes only: half of the value is written, and the caller gets no error
	Duplicate  float64       // writes only: the request arrives a second time, immediately
	Slow       float64       // it takes up to Delay; nothing is done if the caller's context ends first
	Delay      time.Duration // the longest delay of a slow operation
}

// faultyStore fails the way disks and networks do. Its plan may be changed at any time.
type faultyStore struct {
	s *store.Store

	mu     sync.Mutex
	plan   faults
	rand   *rand.Rand
	counts map[string]int
}

// faulty wraps s.
func faulty(s *store.Store, plan faults) *faultyStore {
	return &faultyStore{s: s, plan: plan, rand: rand.New(rand.NewPCG(plan.Seed, plan.Seed)), counts: map[string]int{}}
}

// Set replaces the plan; its seed is ignored.
func (f *faultyStore) Set(plan faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// Counts returns how often each fault occurred, by the name of its field in faults.
func (f *faultyStore) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// draw picks the fault and the delay of one operation.
func (f *faultyStore) draw(write bool) (fault string, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.plan
	if f.rand.Float64() < p.Slow {
		delay = time.Duration(f.rand.Float64() * float64(p.Delay))
		f.counts["Slow"]++
	}
	x := f.rand.Float64()
	type choice struct {
		name  string
		share float64
	}
	choices := []choice{{"Error", p.Error}, {"LostReply", p.LostReply}}
	if write {
		choices = append(choices, choice{"Torn", p.Torn}, choice{"SilentTorn", p.SilentTorn}, choice{"Duplicate", p.Duplicate})
	}
	for _, c := range choices {
		if x < c.share {
			f.counts[c.name]++
			return c.name, delay
		}
		x -= c.share
	}
	return "", delay
}

func (f *faultyStore) do(ctx context.Context, op string, data []byte, write bool, apply func([]byte) error) error {
	fault, delay := f.draw(write)
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		case <-t.C:
		}
	}
	injected := fmt.Errorf("%s: %w", op, errInjected)
	switch fault {
	case "Error":
		return injected
	case "LostReply":
		_ = apply(data) // the caller does not learn whether it was done
		return injected
	case "Torn":
		_ = apply(data[:len(data)/2])
		return injected
	case "SilentTorn":
		return apply(data[:len(data)/2])
	case "Duplicate":
		if err := apply(data); err != nil {
			return err
		}
	}
	return apply(data)
}

// Get reads a value.
func (f *faultyStore) Get(ctx context.Context, key string) (data []byte, err error) {
	err = f.do(ctx, "read "+key, nil, false, func([]byte) error {
		data, err = f.s.Get(ctx, key)
		return err
	})
	return data, err
}

// List lists keys.
func (f *faultyStore) List(ctx context.Context, prefix string) (keys []string, err error) {
	err = f.do(ctx, "list "+prefix, nil, false, func([]byte) error {
		keys, err = f.s.List(ctx, prefix)
		return err
	})
	return keys, err
}

// Put writes a value.
func (f *faultyStore) Put(ctx context.Context, key string, data []byte) error {
	return f.do(ctx, "write "+key, data, true, func(data []byte) error { return f.s.Put(ctx, key, data) })
}

// Create writes a value that does not exist. If the request arrives twice, the caller
// gets the second reply.
func (f *faultyStore) Create(ctx context.Context, key string, data []byte) error {
	return f.do(ctx, "create "+key, data, true, func(data []byte) error { return f.s.Create(ctx, key, data) })
}

// Delete deletes a value.
func (f *faultyStore) Delete(ctx context.Context, key string) error {
	return f.do(ctx, "delete "+key, nil, true, func([]byte) error { return f.s.Delete(ctx, key) })
}
