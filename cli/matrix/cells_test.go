package matrix

import (
	"context"
	"fmt"
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
		names[c.Deployment("sha256:1")] = true
		names[c.Deployment("sha256:2")] = true
		require.LessOrEqual(t, len(c.Deployment("sha256:1")), 15, "the longest name of a deployment")
	}
	require.Len(t, names, 2*len(got))
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
		results := Run(t.Context(), cellsOf(7), 3, func(_ context.Context, c Cell) Result {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Minute)
			now.Add(-1)
			return Result{Cell: c, Outcome: Upgraded}
		})
		require.Equal(t, int32(3), most.Load())
		for i, result := range results {
			require.Equal(t, fmt.Sprint(i), result.Cell.From, "in their order")
			require.Equal(t, Upgraded, result.Outcome)
		}
	})
}

func TestAMatrixThatIsInterruptedBeginsNoCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var begun atomic.Int32
		time.AfterFunc(time.Minute, stop)
		for _, result := range Run(ctx, cellsOf(5), 2, func(ctx context.Context, c Cell) Result {
			begun.Add(1)
			<-ctx.Done()
			return Result{Cell: c, Outcome: Cancelled}
		}) {
			require.Equal(t, Cancelled, result.Outcome)
		}
		require.Equal(t, int32(2), begun.Load())
	})
}
