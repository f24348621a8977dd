package pipeline_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/slipway-sh/slipway/pipeline"
	"golang.org/x/sync/errgroup"
)

// The benchmarks' graph: layers of steps that do nothing, each step needing some
// of the layer before.
const (
	benchLayers = 100
	benchWidth  = 100
	benchNeeds  = 3
	benchSteps  = benchLayers * benchWidth
)

func nothing(context.Context) (struct{}, error) { return struct{}{}, nil }

// benchKeys returns the keys of the steps, which neither side has to make.
func benchKeys() []Key {
	keys := make([]Key, benchSteps)
	for i := range keys {
		keys[i] = Key{Stage: "layer" + strconv.Itoa(i/benchWidth), Name: strconv.Itoa(i)}
	}
	return keys
}

func benchPipeline(keys []Key) *Pipeline {
	p := new(Pipeline)
	var above, layer [benchWidth]*Step[struct{}]
	for i, key := range keys {
		at := i % benchWidth
		if at == 0 {
			above = layer
		}
		if i < benchWidth {
			layer[at] = Add(p, key, nothing)
			continue
		}
		var needs [benchNeeds]Dep
		for j := range needs {
			needs[j] = above[(at+7*j)%benchWidth]
		}
		layer[at] = Add(p, key, nothing, needs[:]...)
	}
	return p
}

func runPipeline(b *testing.B, p *Pipeline) {
	if _, err := p.Run(b.Context(), Options{}); err != nil {
		b.Fatal(err)
	}
}

// runErrgroup runs the same layers, each after all of the one before.
func runErrgroup(b *testing.B) {
	for range benchLayers {
		var g errgroup.Group
		for range benchWidth {
			g.Go(func() error {
				_, err := nothing(b.Context())
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGraph is what a step costs beside an errgroup's: how many times as long
// Run takes, alone and with the wiring of the graph, and what each allocates. They
// take turns, each with a heap that has just been collected, and medians are
// compared, so that whatever else the machine does falls on all.
func BenchmarkGraph(b *testing.B) {
	keys := benchKeys()
	var group, run, both sample
	for b.Loop() {
		p := benchPipeline(keys)
		run.take(func() { runPipeline(b, p) })
		group.take(func() { runErrgroup(b) })
		both.take(func() { runPipeline(b, benchPipeline(keys)) })
	}
	for name, s := range map[string]*sample{"errgroup": &group, "run": &run, "build+run": &both} {
		b.ReportMetric(s.median()/benchSteps, name+"-ns/step")
		b.ReportMetric(float64(s.bytes)/float64(len(s.times))/benchSteps, name+"-B/step")
	}
	b.ReportMetric(run.median()/group.median(), "run/errgroup")
	b.ReportMetric(both.median()/group.median(), "build+run/errgroup")
	b.ReportMetric(0, "ns/op") // of all together: says nothing
}

// sample is what calls of one kind took.
type sample struct {
	times []time.Duration
	bytes uint64 // allocated by all of them
}

func (s *sample) take(f func()) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	s.times = append(s.times, time.Since(start))
	runtime.ReadMemStats(&after)
	s.bytes += after.TotalAlloc - before.TotalAlloc
}

// median returns the median time in nanoseconds.
func (s *sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s.times))
	return float64(sorted[len(sorted)/2].Nanoseconds())
}
