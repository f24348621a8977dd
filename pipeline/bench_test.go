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

// benchKeys are the keys of the steps, which neither side has to make.
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

// BenchmarkLayers compares what a step costs beside an errgroup. Run is Run alone,
// BuildAndRun has the wiring of the graph in it as well.
func BenchmarkLayers(b *testing.B) {
	keys := benchKeys()
	perStep := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSteps, "ns/step")
	}
	b.Run("Errgroup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			runErrgroup(b)
		}
		perStep(b)
	})
	b.Run("Run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			p := benchPipeline(keys)
			runtime.GC() // the garbage of building is not the run's
			b.StartTimer()
			runPipeline(b, p)
		}
		perStep(b)
	})
	b.Run("BuildAndRun", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			runPipeline(b, benchPipeline(keys))
		}
		perStep(b)
	})
}

// BenchmarkRatio is how many times as long as the errgroup Run takes. The two take
// turns, each with a heap that has just been collected, and medians are compared,
// so that whatever else the machine does falls on both.
func BenchmarkRatio(b *testing.B) {
	keys := benchKeys()
	timed := func(f func()) time.Duration {
		runtime.GC()
		start := time.Now()
		f()
		return time.Since(start)
	}
	var run, group []time.Duration
	for b.Loop() {
		p := benchPipeline(keys)
		run = append(run, timed(func() { runPipeline(b, p) }))
		group = append(group, timed(func() { runErrgroup(b) }))
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Nanoseconds()) / benchSteps
	}
	b.ReportMetric(median(group), "errgroup-ns/step")
	b.ReportMetric(median(run), "run-ns/step")
	b.ReportMetric(median(run)/median(group), "run/errgroup")
	b.ReportMetric(0, "ns/op") // of both and of the building: says nothing
}
