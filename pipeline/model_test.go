// A model of the pipeline: random graphs, targets and outcomes, and what a run of them
// must do, for the property tests.

package pipeline_test

import (
	"context"
	"flag"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/slipway-sh/slipway/pipeline"
)

var seedFlag = flag.Uint64("seed", 0, "run the property tests with this seed only")

// seeds returns n random seeds; if the test fails it logs how to repeat the last one.
func seeds(t *testing.T, n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		var seed uint64
		defer func() {
			if t.Failed() {
				t.Logf("again with: go test ./pipeline -race -run '^%s$' -args -seed %d", t.Name(), seed)
			}
		}()
		for range n {
			if seed = *seedFlag; seed == 0 {
				seed = rand.Uint64()
			}
			if !yield(seed) || t.Failed() || *seedFlag != 0 {
				return
			}
		}
	}
}

// plan is a random graph: what each step needs and what it does.
type plan struct {
	stages   []string
	needs    [][]int
	settled  []map[int]bool // which needs are settled ones
	optional []bool
	ends     []string // see randomPlan
	takes    []time.Duration
}

func randomPlan(r *rand.Rand) plan {
	var p plan
	for i := range 1 + r.IntN(14) {
		p.stages = append(p.stages, []string{"one", "two", "three"}[r.IntN(3)])
		var needs []int
		settled := map[int]bool{}
		for j := range i {
			if r.IntN(4) == 0 {
				needs = append(needs, j)
				settled[j] = r.IntN(6) == 0
			}
		}
		p.needs, p.settled = append(p.needs, needs), append(p.settled, settled)
		p.optional = append(p.optional, r.IntN(5) == 0)
		end := "ok"
		if r.IntN(3) == 0 {
			end = []string{"reuse", "fail", "skip", "panic", "before fails", "before skips", "after fails"}[r.IntN(7)]
		}
		p.ends = append(p.ends, end)
		p.takes = append(p.takes, time.Duration(r.IntN(5))*time.Second)
	}
	return p
}

// randomUntil returns targets that exist; most often none.
func (p plan) randomUntil(r *rand.Rand) (targets []string) {
	if r.IntN(2) != 0 {
		return nil
	}
	for range 1 + r.IntN(2) {
		i := r.IntN(len(p.needs))
		for p.cleanup(i) {
			i-- // the first is none
		}
		targets = append(targets, []string{p.stages[i], p.key(i).String()}[r.IntN(2)])
	}
	return targets
}

func (p plan) key(i int) Key { return Key{Stage: p.stages[i], Name: strconv.Itoa(i)} }

// number returns the index of the step with this key.
func number(k Key) int {
	i, err := strconv.Atoi(k.Name)
	if err != nil {
		panic(err)
	}
	return i
}

func (p plan) cleanup(i int) bool {
	for _, settled := range p.settled[i] {
		if settled {
			return true
		}
	}
	return false
}

// wire adds the steps to pipe.
func (p plan) wire(pipe *Pipeline, run func(i int) func(context.Context) (int, error)) []*Step[int] {
	steps := make([]*Step[int], len(p.needs))
	for i := range p.needs {
		var deps []Dep
		for _, j := range p.needs[i] {
			if p.settled[i][j] {
				deps = append(deps, Settled(steps[j]))
			} else {
				deps = append(deps, steps[j])
			}
		}
		if steps[i] = Add(pipe, p.key(i), run(i), deps...); p.optional[i] {
			Optional(steps[i])
		}
	}
	return steps
}

// reach reports for each pair whether i comes after j.
func (p plan) reach() [][]bool {
	after := make([][]bool, len(p.needs))
	for i, needs := range p.needs {
		after[i] = make([]bool, len(p.needs))
		for _, j := range needs {
			after[i][j] = true
			for k := range j {
				after[i][k] = after[i][k] || after[j][k]
			}
		}
	}
	return after
}

// runs reports which steps take part in a run with these targets.
func (p plan) runs(until []string) []bool {
	n, after := len(p.needs), p.reach()
	in := make([]bool, n)
	for i := range n {
		in[i] = len(until) == 0
		for t := range n {
			target := !p.cleanup(t) && (slices.Contains(until, p.stages[t]) || slices.Contains(until, p.key(t).String()))
			in[i] = in[i] || target && (t == i || after[t][i])
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range n {
			for _, j := range p.needs[i] {
				switch {
				case p.settled[i][j] && in[j] && !in[i]:
					in[i], changed = true, true
				case !p.settled[i][j] && in[i] && !in[j]:
					in[j], changed = true, true
				}
			}
		}
	}
	return in
}

// verdict returns the status of step i that follows from the steps it needs, and the
// failed steps that cause it; "" if it can run.
func (p plan) verdict(i int, status []Status, by [][]int) (Status, []int) {
	var failed []int
	cancelled, skipped := false, false
	for _, j := range p.needs[i] {
		if p.settled[i][j] {
			continue
		}
		switch status[j] {
		case Failed:
			failed = append(failed, j)
		case Blocked:
			failed = append(failed, by[j]...)
		case Cancelled:
			cancelled = true
		case Skipped, Warned:
			skipped = true
		}
	}
	slices.Sort(failed)
	switch {
	case len(failed) > 0:
		return Blocked, slices.Compact(failed)
	case cancelled:
		return Cancelled, nil
	case skipped:
		return Skipped, nil
	}
	return "", nil
}

// ran returns the status of step i when it runs to its end, and how long that takes.
func (p plan) ran(i int) (Status, time.Duration) {
	failed := Failed
	if p.optional[i] {
		failed = Warned
	}
	switch p.ends[i] {
	case "before fails":
		return failed, 0
	case "before skips":
		return Skipped, 0
	case "after fails":
		return failed, p.takes[i]
	case "reuse":
		return Reused, p.takes[i]
	case "ok":
		return Succeeded, p.takes[i]
	case "skip":
		return Skipped, p.takes[i]
	}
	return failed, p.takes[i]
}

// outcome is how a run of a plan ends that nothing stops.
type outcome struct {
	status []Status
	by     [][]int         // the failed steps behind each blocked one
	end    []time.Duration // when each ends if nothing limits how many run at once
	order  []int           // in which the steps start if one runs at a time
}

// model runs the steps one after the other, always the first that can.
func (p plan) model(in []bool) outcome {
	n := len(p.needs)
	o := outcome{status: make([]Status, n), by: make([][]int, n), end: make([]time.Duration, n)}
	for i := range n {
		if !in[i] {
			o.status[i] = Unselected
		}
	}
	for next := 0; next < n; next++ {
		i := next
		if o.status[i] != "" || slices.ContainsFunc(p.needs[i], func(j int) bool { return o.status[j] == "" }) {
			continue
		}
		for _, j := range p.needs[i] {
			o.end[i] = max(o.end[i], o.end[j])
		}
		if o.status[i], o.by[i] = p.verdict(i, o.status, o.by); o.status[i] == "" {
			var took time.Duration
			o.status[i], took = p.ran(i)
			o.end[i] += took
			o.order = append(o.order, i)
		}
		next = -1
	}
	return o
}
