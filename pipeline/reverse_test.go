package pipeline_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

func TestAddReverse(t *testing.T) {
	var install Pipeline
	nop := func(context.Context) (int, error) { return 0, nil }
	network := Add(&install, key("network"), nop)
	cluster := Add(&install, key("cluster"), nop, network)
	check := Add(&install, key("check"), nop, cluster)
	git := Add(&install, key("git"), nop, check)
	apps := Add(&install, key("apps"), nop, git, check)
	Add(&install, key("tunnel"), nop, Settled(apps))

	build := func(rec *recorder, fails string) (*Pipeline, []*Step[struct{}]) {
		p := new(Pipeline)
		ask := Add(p, key("ask"), func(context.Context) (int, error) { rec.add("ask"); return 0, nil })
		return p, AddReverse(p, install.Graph(), func(k Key) func(context.Context) error {
			if k.Name == "check" || k.Name == "apps" {
				return nil
			}
			return func(context.Context) error {
				rec.add(k.Name)
				if k.Name == fails {
					return errors.New("no")
				}
				return nil
			}
		}, ask)
	}
	var rec recorder
	p, steps := build(&rec, "")
	require.Equal(t, []Node{
		{Key: key("ask")},
		{Key: key("tunnel"), Needs: []Key{key("ask")}},
		{Key: key("git"), Needs: []Key{key("ask"), key("tunnel")}},
		{Key: key("cluster"), Needs: []Key{key("ask"), key("tunnel"), key("git")}},
		{Key: key("network"), Needs: []Key{key("ask"), key("cluster")}},
	}, p.Graph())
	require.Len(t, steps, 4)
	require.Equal(t, key("tunnel"), steps[0].Key())
	_, err := p.Run(t.Context(), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"ask", "tunnel", "git", "cluster", "network"}, rec.got)

	rec = recorder{}
	p, _ = build(&rec, "git")
	results, err := p.Run(t.Context(), Options{})
	require.EqualError(t, err, "test/git: no")
	require.Equal(t, []string{"ask", "tunnel", "git"}, rec.got)
	require.Equal(t, Blocked, statuses(results)["network"])
}

func TestAddReverse_misuse(t *testing.T) {
	var p Pipeline
	nodes := []Node{{Key: key("b"), Needs: []Key{key("a")}}, {Key: key("a")}}
	remove := func(Key) func(context.Context) error { return func(context.Context) error { return nil } }
	require.Contains(t, panicOf(func() { AddReverse(&p, nodes, remove) }), "test/b comes before test/a, which it needs")
	require.Empty(t, AddReverse(new(Pipeline), nil, remove))
}

// TestAddReverse_anyGraph: a removal waits, however indirectly, for exactly those
// of the steps that come after its own.
func TestAddReverse_anyGraph(t *testing.T) {
	for seed := range seeds(t, plans) {
		r := rand.New(rand.NewPCG(seed, 3))
		plan := randomPlan(r)
		nothing := make([]bool, len(plan.needs)) // to remove
		for i := range nothing {
			nothing[i] = r.IntN(3) == 0
		}
		var install, removal Pipeline
		plan.wire(&install, func(int) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { return 0, nil }
		})
		AddReverse(&removal, install.Graph(), func(k Key) func(context.Context) error {
			if nothing[number(k)] {
				return nil
			}
			return func(context.Context) error { return nil }
		})
		waits := map[int]map[int]bool{}
		for _, n := range removal.Graph() {
			all := map[int]bool{}
			for _, k := range n.Needs {
				all[number(k)] = true
				maps.Copy(all, waits[number(k)])
			}
			waits[number(n.Key)] = all
		}
		after := plan.reach()
		for i := range nothing {
			_, there := waits[i]
			require.Equal(t, !nothing[i], there, "step %d", i)
			for j := range nothing {
				if !nothing[i] && !nothing[j] {
					require.Equal(t, after[j][i], waits[i][j], "removal of %d waits for that of %d", i, j)
				}
			}
		}
	}
}
