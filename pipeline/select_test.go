package pipeline_test

import (
	"context"
	"slices"
	"testing"

	"github.com/slipway-sh/slipway/fault"
	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// platform is
//
//	infra/preflight → infra/cluster ─┬→ pre/namespaces ─┬→ pre/git → apps/sync
//	                                 └→ infra/storage ──│─────────────↗
//	                                                    └→ pre/tls
//
// with the clean-up steps stop/cluster after infra/cluster, stop/tunnel after
// apps/sync and stop/log after both of them. Each step records itself.
func platform(rec *recorder) *Pipeline {
	p := new(Pipeline)
	add := func(stage, name string, needs ...Dep) *Step[string] {
		return Add(p, Key{Stage: stage, Name: name}, func(context.Context) (string, error) {
			rec.add(name)
			return name, nil
		}, needs...)
	}
	preflight := add("infra", "preflight")
	cluster := add("infra", "cluster", preflight)
	storage := add("infra", "storage", cluster)
	namespaces := add("pre", "namespaces", cluster)
	git := add("pre", "git", namespaces)
	add("pre", "tls", namespaces)
	sync := add("apps", "sync", git, storage)
	stop := add("stop", "node", Settled(cluster))
	tunnel := add("stop", "tunnel", Settled(sync))
	add("stop", "log", Settled(stop), Settled(tunnel))
	return p
}

func TestUntil(t *testing.T) {
	all := []string{"preflight", "cluster", "storage", "namespaces", "git", "tls", "sync", "node", "tunnel", "log"}
	for name, c := range map[string]struct {
		until []string
		want  []string // in the order of the graph
	}{
		"everything":    {nil, all},
		"an empty list": {[]string{}, all},
		"the first":     {[]string{"infra/preflight"}, []string{"preflight"}},
		"a step":        {[]string{"pre/git"}, []string{"preflight", "cluster", "namespaces", "git", "node", "log"}},
		"a stage":       {[]string{"infra"}, []string{"preflight", "cluster", "storage", "node", "log"}},
		"two":           {[]string{"infra", "pre/tls"}, []string{"preflight", "cluster", "storage", "namespaces", "tls", "node", "log"}},
		"the end":       {[]string{"apps"}, []string{"preflight", "cluster", "storage", "namespaces", "git", "sync", "node", "tunnel", "log"}},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			results, err := platform(&rec).Run(t.Context(), Options{Until: c.until})
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, rec.got)
			for i, r := range results {
				want := Unselected
				if slices.Contains(c.want, all[i]) {
					want = Succeeded
				}
				require.Equal(t, want, r.Status, r.Name)
				require.NoError(t, r.Err)
				require.Equal(t, want == Unselected, r.Started.IsZero())
				require.False(t, r.Finished.IsZero())
			}
		})
	}
}

func TestUntil_errors(t *testing.T) {
	for name, c := range map[string]struct {
		until []string
		err   string
	}{
		"unknown": {[]string{"pre/gti", "infra", "aps", "pre/gti"},
			`select steps: no stage or step is named "pre/gti", "aps"; the stages are infra, pre, apps; the steps are ` +
				`infra/preflight, infra/cluster, infra/storage, pre/namespaces, pre/git, pre/tls, apps/sync`},
		"a clean-up step": {[]string{"stop/node"}, `no stage or step is named "stop/node"`},
		"a name alone":    {[]string{"git"}, `"git"`},
		"empty":           {[]string{""}, `""`},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			events := 0
			require.ErrorIs(t, platform(&rec).CheckUntil(c.until), &fault.Fault{Code: CodeSelection})
			results, err := platform(&rec).Run(t.Context(), Options{Until: c.until, Observe: func(Event) { events++ }})
			require.ErrorIs(t, err, &fault.Fault{Code: CodeSelection})
			require.ErrorContains(t, err, c.err)
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			require.Empty(t, results)
			require.Empty(t, rec.got)
			require.Zero(t, events)
		})
	}
}

// TestUntil_cleanupThatIsNeeded: a clean-up step runs when what it settles on takes part, and so
// does what it needs.
func TestUntil_cleanupThatIsNeeded(t *testing.T) {
	build := func(rec *recorder) *Pipeline {
		p := new(Pipeline)
		step := func(name string) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { rec.add(name); return 0, nil }
		}
		key1 := Add(p, key("key"), step("key"))
		a := Add(p, key("a"), step("a"))
		cleanup := Add(p, key("cleanup"), step("cleanup"), key1, Settled(a))
		Add(p, key("b"), step("b"), cleanup)
		Add(p, key("other"), step("other"), Settled(a))
		return p
	}
	for until, want := range map[string][]string{
		"test/a":   {"key", "a", "cleanup", "other"},
		"test/key": {"key"},
		"test/b":   {"key", "a", "cleanup", "b", "other"},
	} {
		var rec recorder
		_, err := build(&rec).Run(t.Context(), Options{Parallel: 1, Until: []string{until}})
		require.NoError(t, err)
		require.Equal(t, want, rec.got, until)
	}
}

// TestUntil_unselectedIsObserved: at the start, and once.
func TestUntil_unselectedIsObserved(t *testing.T) {
	var p Pipeline
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, nil })
	b := Add(&p, key("b"), func(context.Context) (int, error) { return 0, nil }, a)
	Add(&p, key("c"), func(context.Context) (int, error) { return 0, nil }, Settled(b))
	var events []string
	_, err := p.Run(t.Context(), Options{
		Until:   []string{"test/a"},
		Observe: func(e Event) { events = append(events, e.Result.Name+" "+string(e.Status)) },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"b unselected", "c unselected", "a running", "a succeeded"}, events)
}
