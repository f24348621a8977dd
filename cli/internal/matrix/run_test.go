package matrix

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCells(t *testing.T) {
	a := Axes{From: []string{"1.0.0", "1.1.0"}, To: []string{"1.1.0", "2.0.0"}, Scales: []int{50}, Styles: []string{"graceful", "in-place"}, Faults: []string{NoFault}}
	var got []string
	for _, c := range a.Cells() {
		got = append(got, c.String())
	}
	require.Equal(t, []string{
		"1.0.0 to 1.1.0, scale 50, graceful", "1.0.0 to 1.1.0, scale 50, in-place",
		"1.0.0 to 2.0.0, scale 50, graceful", "1.0.0 to 2.0.0, scale 50, in-place",
		"1.1.0 to 2.0.0, scale 50, graceful", "1.1.0 to 2.0.0, scale 50, in-place",
	}, got)
	names := map[string]bool{}
	for _, c := range a.Cells() {
		names[c.Deployment("matrix")] = true
		require.LessOrEqual(t, len(c.Deployment("matrix")), 15, "the longest name of a deployment")
	}
	require.Len(t, names, len(got))
}

func TestEachCellIsInOneShard(t *testing.T) {
	var all []Cell
	for i := range 7 {
		all = append(all, Cell{Scale: i})
	}
	var joined []Cell
	for n := range 3 {
		s, err := ParseShard(fmt.Sprintf("%d/3", n+1))
		require.NoError(t, err)
		joined = append(joined, s.Cells(all)...)
	}
	require.ElementsMatch(t, all, joined)
	require.Equal(t, all, Shard{}.Cells(all))
	for _, wrong := range []string{"", "1", "0/2", "3/2", "a/b", "1/0", "1/2/3", "-1/2"} {
		_, err := ParseShard(wrong)
		require.ErrorContains(t, err, "give i/n", wrong)
	}
}

func cellsOf(n int) []Cell {
	var out []Cell
	for i := range n {
		out = append(out, Cell{From: fmt.Sprint(i), To: "x"})
	}
	return out
}

func TestSoManyCellsRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		var told []string
		r := Runner{Parallel: 3, Do: func(_ context.Context, c Cell, engine string) Result {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Minute)
			now.Add(-1)
			return Result{Cell: c, Outcome: Upgraded}
		}, Ended: func(r Result) { told = append(told, r.Cell.From) }}
		results := r.Run(t.Context(), cellsOf(7))
		require.Equal(t, int32(3), most.Load())
		require.Len(t, told, 7)
		for i, result := range results {
			require.Equal(t, fmt.Sprint(i), result.Cell.From, "in their order")
		}
	})
}

func TestAMatrixThatIsInterruptedBeginsNoCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r := Runner{Parallel: 2, Do: func(ctx context.Context, c Cell, _ string) Result {
			<-ctx.Done()
			return Result{Cell: c, Outcome: Cancelled}
		}}
		time.AfterFunc(time.Minute, stop)
		for _, result := range r.Run(ctx, cellsOf(5)) {
			require.Equal(t, Cancelled, result.Outcome)
		}
	})
}

// TestCellsOfAnEngineThatDiesRunElsewhere: each cell has one engine for all its commands, the
// cells are spread evenly, and a failure is a cell's own as long as its engine answers.
func TestCellsOfAnEngineThatDiesRunElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ran := map[string]int{}
		died := false
		r := Runner{Parallel: 4, Engines: []string{"a", "b"},
			Do: func(_ context.Context, c Cell, engine string) Result {
				mu.Lock()
				ran[engine]++
				mu.Unlock()
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if engine == "b" {
					died = true
				}
				if engine == "b" || c.From == "0" {
					return Result{Cell: c, Outcome: Failed, Engine: engine}
				}
				return Result{Cell: c, Outcome: Upgraded, Engine: engine}
			},
			Answers: func(_ context.Context, engine string) bool {
				mu.Lock()
				defer mu.Unlock()
				return engine == "a" || !died
			},
		}
		results := r.Run(t.Context(), cellsOf(6))
		require.Equal(t, map[string]int{"a": 6, "b": 2}, ran)
		for i, result := range results {
			require.Equal(t, "a", result.Engine)
			require.Equal(t, i == 0, result.Outcome == Failed, "cell %d", i)
		}
	})
}

func TestTheErrorOfTheLastEngineIsTold(t *testing.T) {
	r := Runner{Parallel: 1, Engines: []string{"a"}, Do: func(_ context.Context, c Cell, _ string) Result {
		return Result{Cell: c, Outcome: Failed, Reason: "no engine"}
	}, Answers: func(context.Context, string) bool { return false }}
	for _, result := range r.Run(t.Context(), cellsOf(2)) {
		require.Equal(t, "no engine", result.Reason)
	}
}

// TestACellGoesOnOnItsEngine unless that is dead, or none of these.
func TestACellGoesOnOnItsEngine(t *testing.T) {
	ran := map[string]string{}
	r := Runner{Parallel: 1, Engines: []string{"a", "b"},
		Do: func(_ context.Context, c Cell, engine string) Result {
			ran[c.From] += engine
			if engine == "b" && c.From == "2" {
				return Result{Cell: c, Outcome: Failed}
			}
			return Result{Cell: c, Outcome: Upgraded}
		},
		Prefers: func(c Cell) string { return map[string]string{"0": "b", "1": "c", "2": "b", "3": "b"}[c.From] },
		Answers: func(_ context.Context, engine string) bool { return engine == "a" },
	}
	r.Run(t.Context(), cellsOf(4))
	require.Equal(t, map[string]string{"0": "b", "1": "a", "2": "ba", "3": "a"}, ran)
}
