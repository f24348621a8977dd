package progress_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

func TestRemaining(t *testing.T) {
	stand := func(ran time.Duration, ended bool) progress.Stand { return progress.Stand{Ran: ran, Ended: ended} }
	known := usualDurations()
	unknown := usualDurations()
	delete(unknown, syncApps)
	for name, c := range map[string]struct {
		usual    map[pipeline.Key]time.Duration
		now      map[pipeline.Key]progress.Stand
		parallel int
		want     time.Duration
		ok       bool
	}{
		"nothing has started":            {known, nil, 0, 102 * time.Second, true},
		"one at a time":                  {known, nil, 1, 117 * time.Second, true},
		"two at a time are enough":       {known, nil, 2, 102 * time.Second, true},
		"the first runs":                 {known, map[pipeline.Key]progress.Stand{preflight: stand(time.Second, false)}, 0, 101 * time.Second, true},
		"over its time":                  {known, map[pipeline.Key]progress.Stand{preflight: stand(time.Hour, false)}, 0, 100 * time.Second, true},
		"the clock went backwards":       {known, map[pipeline.Key]progress.Stand{preflight: stand(-time.Hour, false)}, 0, 102 * time.Second, true},
		"a short path is left":           {known, map[pipeline.Key]progress.Stand{preflight: stand(0, true), terraform: stand(0, true)}, 0, 70 * time.Second, true},
		"an unknown step":                {unknown, nil, 0, 0, false},
		"no history":                     {nil, nil, 0, 0, false},
		"an unknown step that has ended": {unknown, map[pipeline.Key]progress.Stand{syncApps: stand(0, true)}, 0, 42 * time.Second, true},
		"all have ended, nothing is known": {nil, map[pipeline.Key]progress.Stand{preflight: stand(0, true), terraform: stand(0, true), node: stand(0, true),
			tls: stand(0, true), syncApps: stand(0, true)}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := progress.Remaining(graph(), c.usual, c.now, c.parallel)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.want, got)
		})
	}
}

// Random graphs, executed on paper: when every step takes as long as usual the
// estimate is exact at every moment; when steps are faster or slower, and some
// never run, it is never negative and never grows.
func TestRemaining_properties(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(12)
		nodes := make([]pipeline.Node, n)
		takes := map[pipeline.Key]time.Duration{}
		expected := map[pipeline.Key]time.Duration{}
		exact := seed%2 == 0
		parallel := 0
		if !exact {
			parallel = r.IntN(4)
		}
		for i := range nodes {
			nodes[i].Key = pipeline.Key{Stage: "s", Name: fmt.Sprint(i)}
			for _, need := range nodes[:i] {
				switch r.IntN(8) {
				case 0, 1:
					nodes[i].Needs = append(nodes[i].Needs, need.Key)
				case 2:
					nodes[i].Settled = append(nodes[i].Settled, need.Key)
				}
			}
			takes[nodes[i].Key] = time.Duration(r.IntN(20)) * time.Second
			expected[nodes[i].Key] = takes[nodes[i].Key]
			if !exact {
				expected[nodes[i].Key] = time.Duration(r.IntN(20)) * time.Second
			}
		}
		starts, ends, whole := schedule(nodes, takes)
		last := time.Duration(1 << 62)
		for at := time.Duration(0); at <= whole; at += 500 * time.Millisecond {
			now := map[pipeline.Key]progress.Stand{}
			for _, node := range nodes {
				k := node.Key
				if at >= starts[k] {
					now[k] = progress.Stand{Ran: at - starts[k], Ended: at >= ends[k]}
				}
			}
			got, ok := progress.Remaining(nodes, expected, now, parallel)
			require.True(t, ok)
			require.GreaterOrEqual(t, got, time.Duration(0), "seed %d", seed)
			require.LessOrEqual(t, got, last, "seed %d at %s: it grew", seed, at)
			if exact {
				require.Equal(t, whole-at, got, "seed %d at %s", seed, at)
			}
			last = got
			// Whatever ends now, however it does: nothing gets longer.
			for _, node := range nodes {
				before := now[node.Key]
				now[node.Key] = progress.Stand{Ran: before.Ran, Ended: true}
				less, ok := progress.Remaining(nodes, expected, now, parallel)
				require.True(t, ok)
				require.LessOrEqual(t, less, got, "seed %d at %s: the end of %s", seed, at, node.Key)
				now[node.Key] = before
			}
		}
		require.True(t, !exact || last == 0, "seed %d", seed)
	}
}

// schedule returns when each step starts and ends, and when the last one does.
func schedule(nodes []pipeline.Node, takes map[pipeline.Key]time.Duration) (starts, ends map[pipeline.Key]time.Duration, whole time.Duration) {
	starts, ends = map[pipeline.Key]time.Duration{}, map[pipeline.Key]time.Duration{}
	for _, n := range nodes {
		for _, k := range append(append([]pipeline.Key{}, n.Needs...), n.Settled...) {
			starts[n.Key] = max(starts[n.Key], ends[k])
		}
		ends[n.Key] = starts[n.Key] + takes[n.Key]
		whole = max(whole, ends[n.Key])
	}
	return starts, ends, whole
}
