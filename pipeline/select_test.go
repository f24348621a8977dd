package pipeline_test

import (
	"context"
	"errors"
	"fmt"
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
// apps/sync and stop/log after both of them. Each step records itself, with a
// question mark when it may only verify; those in missing cannot.
func platform(rec *recorder, missing ...string) *Pipeline {
	p := new(Pipeline)
	add := func(stage, name string, needs ...Dep) *Step[string] {
		k := Key{Stage: stage, Name: name}
		return Add(p, k, func(ctx context.Context) (string, error) {
			if !VerifyOnly(ctx) {
				rec.add(name)
				return name, nil
			}
			rec.add(name + "?")
			if slices.Contains(missing, name) {
				return "", fmt.Errorf("the journal: %w", ErrNotVerified)
			}
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

func TestSelect(t *testing.T) {
	all := []string{"preflight", "cluster", "storage", "namespaces", "git", "tls", "sync", "node", "tunnel", "log"}
	for name, c := range map[string]struct {
		sel  Select
		want []string // in the order of the graph
	}{
		"everything":                      {Select{}, all},
		"empty lists":                     {Select{Until: []string{}, Only: []string{}}, all},
		"only a step":                     {Select{Only: []string{"apps/sync"}}, []string{"preflight?", "cluster?", "storage?", "namespaces?", "git?", "sync", "node", "tunnel", "log"}},
		"only the first":                  {Select{Only: []string{"infra/preflight"}}, []string{"preflight"}},
		"only a stage":                    {Select{Only: []string{"infra"}}, []string{"preflight", "cluster", "storage", "node", "log"}},
		"only two":                        {Select{Only: []string{"infra", "pre/tls"}}, []string{"preflight", "cluster", "storage", "namespaces?", "tls", "node", "log"}},
		"until":                           {Select{Until: []string{"pre/git"}}, []string{"preflight", "cluster", "namespaces", "git", "node", "log"}},
		"until the end":                   {Select{Until: []string{"apps"}}, []string{"preflight", "cluster", "storage", "namespaces", "git", "sync", "node", "tunnel", "log"}},
		"until and only":                  {Select{Until: []string{"pre/git"}, Only: []string{"pre", "infra/preflight"}}, []string{"preflight", "cluster?", "namespaces", "git", "node", "log"}},
		"a gap: it needs what runs again": {Select{Only: []string{"infra/cluster", "pre/tls"}}, []string{"preflight?", "cluster", "namespaces?", "tls", "node", "log"}},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			results, err := platform(&rec).Run(t.Context(), Options{Select: c.sel})
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, rec.got)
			for i, r := range results {
				want := Unselected
				if slices.Contains(c.want, all[i]) {
					want = Succeeded
				} else if slices.Contains(c.want, all[i]+"?") {
					want = Reused
					require.True(t, r.Detail.Reused)
				}
				require.Equal(t, want, r.Status, r.Name)
				require.NoError(t, r.Err)
				require.Equal(t, want == Unselected, r.Started.IsZero())
				require.False(t, r.Finished.IsZero())
			}
		})
	}
}

func TestSelect_errors(t *testing.T) {
	for name, c := range map[string]struct {
		sel  Select
		code fault.Code
		err  string
	}{
		"unknown": {Select{Until: []string{"pre/gti", "infra"}, Only: []string{"aps", "pre/gti"}}, CodeSelection,
			`select steps: no stage or step is named "pre/gti", "aps"; the stages are infra, pre, apps; the steps are ` +
				`infra/preflight, infra/cluster, infra/storage, pre/namespaces, pre/git, pre/tls, apps/sync`},
		"a clean-up step": {Select{Only: []string{"stop/node"}}, CodeSelection, `no stage or step is named "stop/node"`},
		"a name alone":    {Select{Only: []string{"git"}}, CodeSelection, `"git"`},
		"empty":           {Select{Only: []string{""}}, CodeSelection, `""`},
		"nothing":         {Select{Until: []string{"infra/cluster", "pre/git"}, Only: []string{"apps"}}, CodeSelection, "select steps: no step is --until infra/cluster --until pre/git --only apps at once"},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			events := 0
			results, err := platform(&rec).Run(t.Context(), Options{Select: c.sel, Observe: func(Event) { events++ }})
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			require.ErrorContains(t, err, c.err)
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			require.Empty(t, results)
			require.Empty(t, rec.got)
			require.Zero(t, events)
		})
	}
}

func TestSelect_whatCannotBeVerified(t *testing.T) {
	var rec recorder
	results, err := platform(&rec, "cluster", "storage").Run(t.Context(), Options{Select: Select{Only: []string{"pre/git", "infra/preflight"}}})
	require.Equal(t, []string{"preflight", "cluster?", "node", "log"}, rec.got)
	require.Equal(t, map[string]Status{
		"preflight": Succeeded, "cluster": Failed, "storage": Unselected, "namespaces": Blocked, "git": Blocked,
		"tls": Unselected, "sync": Unselected, "node": Succeeded, "tunnel": Unselected, "log": Succeeded,
	}, statuses(results))
	require.ErrorIs(t, err, ErrNotVerified)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, CodeNotVerified, f.Code)
	require.Equal(t, fault.Step, f.Class)
	require.EqualError(t, f, "leave it out (--only pre/git --only infra/preflight), though what is selected needs it: the journal: no earlier result of it can be reused")
	require.Equal(t, "run all steps, of which those that hold are not repeated: slipway install", f.Fix)
	_, cancelled := errors.AsType[*CancelError](err)
	require.False(t, cancelled, "unselected steps are not reported as left")
}

// TestSelect_otherErrors: ErrNotVerified means nothing for a step that runs, and
// another error of one that verifies is its own.
func TestSelect_otherErrors(t *testing.T) {
	var p Pipeline
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, errors.New("no") })
	b := Add(&p, key("b"), func(context.Context) (int, error) { return 0, nil }, a)
	Add(&p, key("c"), func(context.Context) (int, error) { return 0, ErrNotVerified })
	results, err := p.Run(t.Context(), Options{Select: Select{Only: []string{"test/b", "test/c"}}})
	require.EqualError(t, err, "test/a: no\ntest/c: no earlier result of it can be reused")
	require.NotErrorIs(t, err, &fault.Fault{Code: CodeNotVerified})
	require.Equal(t, map[string]Status{"a": Failed, "b": Blocked, "c": Failed}, statuses(results))
	require.Contains(t, panicOf(func() { b.Value() }), "which is blocked")
}

func TestSelect_optionalStepThatCannotBeVerified(t *testing.T) {
	var p Pipeline
	a := Optional(Add(&p, key("a"), func(context.Context) (int, error) { return 0, ErrNotVerified }))
	Add(&p, key("b"), func(context.Context) (int, error) { t.Error("ran b"); return 0, nil }, a)
	results, err := p.Run(t.Context(), Options{Select: Select{Only: []string{"test/b"}}})
	require.NoError(t, err)
	require.Equal(t, map[string]Status{"a": Warned, "b": Skipped}, statuses(results))
	require.ErrorIs(t, results[0].Err, &fault.Fault{Code: CodeNotVerified})
}

// TestSelect_cleanupThatIsNeeded: a clean-up step verifies when what it settles on
// takes no part and a selected step needs it, and runs when it does take part.
func TestSelect_cleanupThatIsNeeded(t *testing.T) {
	build := func(rec *recorder) *Pipeline {
		p := new(Pipeline)
		step := func(name string) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) { rec.add(fmt.Sprint(name, " ", VerifyOnly(ctx))); return 0, nil }
		}
		key1 := Add(p, key("key"), step("key"))
		a := Add(p, key("a"), step("a"))
		cleanup := Add(p, key("cleanup"), step("cleanup"), key1, Settled(a))
		Add(p, key("b"), step("b"), cleanup)
		Add(p, key("other"), step("other"), Settled(a))
		return p
	}
	for _, c := range []struct {
		sel  Select
		want []string
	}{
		{Select{Only: []string{"test/b"}}, []string{"key true", "cleanup true", "b false"}},
		{Select{Only: []string{"test/a"}}, []string{"key true", "a false", "cleanup false", "other false"}},
		{Select{Only: []string{"test/key"}}, []string{"key false"}},
		{Select{Until: []string{"test/b"}}, []string{"key false", "a false", "cleanup false", "b false", "other false"}},
	} {
		var rec recorder
		_, err := build(&rec).Run(t.Context(), Options{Parallel: 1, Select: c.sel})
		require.NoError(t, err)
		require.Equal(t, c.want, rec.got, c.sel)
	}
}

func TestVerifyOnly_whoIsTold(t *testing.T) {
	require.False(t, VerifyOnly(t.Context()))
	var p Pipeline
	var rec recorder
	a := Add(&p, key("a"), func(ctx context.Context) (int, error) {
		var inner Pipeline
		Add(&inner, key("inner"), func(ctx context.Context) (int, error) {
			rec.add(fmt.Sprint("inner ", VerifyOnly(ctx)))
			return 0, nil
		})
		_, err := inner.Run(context.WithValue(ctx, valueKey{}, 1), Options{})
		return 0, err
	})
	Add(&p, key("b"), func(ctx context.Context) (int, error) { return 0, nil }, a)
	var events []string
	_, err := p.Run(t.Context(), Options{
		Select: Select{Only: []string{"test/b"}},
		Hooks: []Hook{{Step: EveryStep,
			Before: func(ctx context.Context, k Key) error { rec.add(fmt.Sprint(k.Name, " ", VerifyOnly(ctx))); return nil },
			After:  func(_ context.Context, r Result) error { rec.add(fmt.Sprint(r.Name, " ", r.Status)); return nil },
		}},
		Observe: func(e Event) { events = append(events, e.Result.Name+" "+string(e.Status)) },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"inner true", "b false", "b succeeded"}, rec.got, "no hook runs around a step that only verifies")
	require.Equal(t, []string{"a running", "a reused", "b running", "b succeeded"}, events)
}

// TestSelect_unselectedIsObserved: at the start, and once.
func TestSelect_unselectedIsObserved(t *testing.T) {
	var p Pipeline
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, nil })
	b := Add(&p, key("b"), func(context.Context) (int, error) { return 0, nil }, a)
	Add(&p, key("c"), func(context.Context) (int, error) { return 0, nil }, Settled(b))
	var events []string
	_, err := p.Run(t.Context(), Options{
		Select:  Select{Only: []string{"test/a"}},
		Observe: func(e Event) { events = append(events, e.Result.Name+" "+string(e.Status)) },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"b unselected", "c unselected", "a running", "a succeeded"}, events)
}
