package conductor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// fakeHooks runs nothing: a hook ends as outcomes and errs say, and what it was
// told is kept, with all else that happens, in order.
type fakeHooks struct {
	outcomes map[string]containers.HookOutcome
	errs     map[string]error

	mu     sync.Mutex
	log    []string
	envs   map[string]map[string]string // of the last execution, by hook
	events []string
}

func (f *fakeHooks) add(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, s)
}

func (f *fakeHooks) runner() *hookRunner {
	f.envs = map[string]map[string]string{}
	r := &hookRunner{run: "20260102-150405-1a2b3c", deployment: "blue", workflow: config.Install}
	r.exec = func(_ context.Context, h config.Hook, on pipeline.Key, env map[string]string) (containers.HookOutcome, error) {
		f.add(h.Name + " " + r.place(h, on))
		f.mu.Lock()
		defer f.mu.Unlock()
		f.envs[h.Name] = env
		return f.outcomes[h.Name], f.errs[h.Name]
	}
	r.observe = oneAtATime(func(e pipeline.Event) { f.events = append(f.events, report.Line(e)) })
	return r
}

// conduct runs the steps a/one → a/two with hooks around them; failing is the
// error of a/one.
func (f *fakeHooks) conduct(ctx context.Context, failing error, hooks ...config.Hook) (*hookRunner, []pipeline.Result, error) {
	var p pipeline.Pipeline
	step := func(name string, err error, needs ...pipeline.Dep) *pipeline.Step[int] {
		return pipeline.Add(&p, pipeline.Key{Stage: "a", Name: name}, func(context.Context) (int, error) {
			f.add("step a/" + name)
			return 0, err
		}, needs...)
	}
	step("two", nil, step("one", failing))
	for i := range hooks {
		if hooks[i].Timeout == 0 {
			hooks[i].SetDefaults()
		}
	}
	r := f.runner()
	own := boundHooks(hooks, p.Graph())
	results, err := p.Run(ctx, pipeline.Options{Hooks: r.bind(own), CleanupTimeout: hooksTimeout(own)})
	return r, results, err
}

func TestHooksAroundAStage(t *testing.T) {
	var f fakeHooks
	r, _, err := f.conduct(t.Context(), errors.New("no"),
		config.Hook{Name: "backup", Before: "a"}, config.Hook{Name: "tell", After: "a", Always: true},
		config.Hook{Name: "cheer", After: "a"}, config.Hook{Name: "elsewhere", After: "b"},
	)
	require.ErrorContains(t, err, "a/one: no")
	require.Equal(t, []string{"backup before the stage a", "step a/one", "tell after the stage a"}, f.log)
	require.Equal(t, []string{"a", "", "failed"}, []string{f.envs["tell"]["SLIPWAY_STAGE"], f.envs["tell"]["SLIPWAY_STEP"], f.envs["tell"]["SLIPWAY_STATUS"]})
	require.Contains(t, f.envs["tell"]["SLIPWAY_ERROR"], "a/one: no")
	require.Len(t, r.ended, 2)
	require.Equal(t, "hooks/tell", r.ended[1].String())
}

func TestHooksRunInTheOrderOfTheFile(t *testing.T) {
	for range 50 {
		var f fakeHooks
		r, results, err := f.conduct(t.Context(), nil,
			config.Hook{Name: "last", After: "workflow"},
			config.Hook{Name: "after-one", After: "a/one"},
			config.Hook{Name: "each", Before: "*"},
			config.Hook{Name: "before-one", Before: "a/one"},
			config.Hook{Name: "after-one-too", After: "a/one"},
			config.Hook{Name: "elsewhere", Before: "b/one"},
			config.Hook{Name: "first", Before: "workflow"},
			config.Hook{Name: "first-too", Before: "workflow"},
		)
		require.NoError(t, err)
		require.Equal(t, []string{
			"first before the workflow", "first-too before the workflow",
			"each before a/one", "before-one before a/one", "step a/one", "after-one after a/one", "after-one-too after a/one",
			"each before a/two", "step a/two",
			"last after the workflow",
		}, f.log)
		require.Len(t, results, 2)

		var rows []string
		for _, e := range r.ended {
			rows = append(rows, e.String()+" "+string(e.Status)+" "+e.Detail.Log)
			require.Contains(t, r.logs, e.Detail.Log)
		}
		require.Equal(t, []string{
			"hooks/first succeeded hooks/first.txt", "hooks/first-too succeeded hooks/first-too.txt",
			"hooks/each@a/one succeeded hooks/each@a.one.txt", "hooks/before-one succeeded hooks/before-one.txt",
			"hooks/after-one succeeded hooks/after-one.txt", "hooks/after-one-too succeeded hooks/after-one-too.txt",
			"hooks/each@a/two succeeded hooks/each@a.two.txt", "hooks/last succeeded hooks/last.txt",
		}, rows)
		require.Equal(t, "hooks/first: running", f.events[0])
		require.Regexp(t, `^hooks/first: succeeded after `, f.events[1])
		require.Len(t, f.events, 16)
	}
}

func TestAHookThatFailsFailsItsStep(t *testing.T) {
	f := fakeHooks{outcomes: map[string]containers.HookOutcome{
		"backup": {ExitCode: 3, Output: "dump\n\x1b[31mno space left\x1b[0m\n\n"},
	}}
	r, results, err := f.conduct(t.Context(), nil,
		config.Hook{Name: "backup", Before: "a/two"}, config.Hook{Name: "after-two", After: "a/two"},
		config.Hook{Name: "tell", After: "workflow", Always: true}, config.Hook{Name: "celebrate", After: "workflow"})
	require.Equal(t, []string{"step a/one", "backup before a/two", "tell after the workflow"}, f.log)
	require.EqualError(t, err, "a/two: hook before the step: run the hook backup before a/two: exit status 3: no space left")
	got, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, codeHookFailed, got.Code)
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.Equal(t, "hooks/backup.txt", got.Log)
	require.NotEmpty(t, got.Fix)
	require.Equal(t, pipeline.Failed, results[1].Status)

	require.Equal(t, pipeline.Failed, r.ended[0].Status)
	require.Regexp(t, `^\S+Z hook backup before a/two: failed after \S+\nrun the hook backup before a/two: exit status 3: `, r.logs["hooks/backup.txt"])
	require.Contains(t, r.logs["hooks/backup.txt"], "\n\ndump\n")

	tell := f.envs["tell"]
	require.Equal(t, "failed", tell["SLIPWAY_STATUS"])
	require.Equal(t, "HOK-001", tell["SLIPWAY_ERROR_CODE"])
	require.Contains(t, tell["SLIPWAY_ERROR"], "exit status 3")
	require.Equal(t, "", tell["SLIPWAY_STEP"])
}

func TestAHookBeforeTheWorkflowKeepsItFromStarting(t *testing.T) {
	f := fakeHooks{outcomes: map[string]containers.HookOutcome{"gate": {ExitCode: 1}}}
	_, results, err := f.conduct(t.Context(), nil, config.Hook{Name: "gate", Before: "workflow"})
	require.Equal(t, []string{"gate before the workflow"}, f.log)
	require.EqualError(t, err, "hook before the run: run the hook gate before the workflow: exit status 1")
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.Equal(t, pipeline.Cancelled, results[0].Status)
}

func TestAHookThatTakesTooLongIsATimeout(t *testing.T) {
	f := fakeHooks{outcomes: map[string]containers.HookOutcome{"slow": {TimedOut: true, Output: "waiting for the lock\n"}}}
	_, _, err := f.conduct(t.Context(), nil, config.Hook{Name: "slow", After: "a/one", Timeout: config.Duration(90 * time.Second)})
	require.ErrorIs(t, err, &fault.Fault{Code: codeHookFailed})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "it did not end within 1m30s: waiting for the lock")
	require.Equal(t, []string{"step a/one", "slow after a/one"}, f.log, "what needs the step does not start")
}

func TestAnOptionalHookOnlyWarns(t *testing.T) {
	f := fakeHooks{
		outcomes: map[string]containers.HookOutcome{"notify": {ExitCode: 22, Output: "404"}},
		errs:     map[string]error{"lost": errors.New("no such image")},
	}
	r, _, err := f.conduct(t.Context(), nil,
		config.Hook{Name: "notify", Before: "a/one", Optional: true}, config.Hook{Name: "lost", After: "a/one", Optional: true})
	require.NoError(t, err)
	require.Equal(t, []string{"notify before a/one", "step a/one", "lost after a/one", "step a/two"}, f.log)
	require.Equal(t, pipeline.Warned, r.ended[0].Status)
	require.ErrorIs(t, r.ended[0].Err, &fault.Fault{Code: codeHookFailed})
	require.ErrorContains(t, r.ended[1].Err, "run the hook lost after a/one: no such image")
	require.Regexp(t, `^hooks/notify: warned after .*exit status 22: 404$`, f.events[1])
}

func TestAHookAfterAStepThatFailedRunsAlwaysOrNot(t *testing.T) {
	var f fakeHooks
	broken := &fault.Fault{Code: "INF-003", Class: fault.Step, Op: "apply", Err: errors.New(strings.Repeat("é", maxEnvError) + "\x00")}
	_, _, err := f.conduct(t.Context(), broken,
		config.Hook{Name: "migrate", After: "a/one"}, config.Hook{Name: "tell", After: "*", Always: true},
		config.Hook{Name: "tell-again", After: "a/one", Always: true})
	require.ErrorIs(t, err, broken)
	require.Equal(t, []string{"step a/one", "tell after a/one", "tell-again after a/one"}, f.log, "a/two was never started")
	env := f.envs["tell-again"]
	require.LessOrEqual(t, len(env["SLIPWAY_ERROR"]), maxEnvError)
	require.True(t, strings.HasPrefix(env["SLIPWAY_ERROR"], "apply: é"))
	delete(env, "SLIPWAY_ERROR")
	require.Regexp(t, `^\d+\.\d{3}$`, env["SLIPWAY_SECONDS"])
	delete(env, "SLIPWAY_SECONDS")
	require.Equal(t, map[string]string{
		"SLIPWAY_RUN": "20260102-150405-1a2b3c", "SLIPWAY_DEPLOYMENT": "blue", "SLIPWAY_WORKFLOW": "install",
		"SLIPWAY_HOOK": "tell-again", "SLIPWAY_STAGE": "a", "SLIPWAY_STEP": "one",
		"SLIPWAY_STATUS": "failed", "SLIPWAY_ERROR_CODE": "INF-003",
	}, env)
}

func TestAHookBeforeAStepKnowsNoOutcome(t *testing.T) {
	var f fakeHooks
	_, _, err := f.conduct(t.Context(), nil, config.Hook{Name: "early", Before: "a/one"})
	require.NoError(t, err)
	require.Equal(t, "pending", f.envs["early"]["SLIPWAY_STATUS"])
	require.Equal(t, "0.000", f.envs["early"]["SLIPWAY_SECONDS"])
	require.Contains(t, f.envs["early"], "SLIPWAY_ERROR", "a script under sh -u may read it")
}

func TestAnInterruptedHookIsNoFailureOfIts(t *testing.T) {
	interrupt := &fault.Fault{Code: "RUN-001", Class: fault.Cancelled, Op: "run", Err: errors.New("interrupted")}
	ctx, cancel := context.WithCancelCause(t.Context())
	var f fakeHooks
	r := f.runner()
	r.exec = func(ctx context.Context, _ config.Hook, on pipeline.Key, env map[string]string) (containers.HookOutcome, error) {
		f.add(on.String() + " " + env["SLIPWAY_STATUS"])
		if on == (pipeline.Key{}) {
			return containers.HookOutcome{}, nil
		}
		cancel(interrupt)
		return containers.HookOutcome{}, context.Cause(ctx)
	}
	var p pipeline.Pipeline
	pipeline.Add(&p, pipeline.Key{Stage: "a", Name: "one"}, func(context.Context) (int, error) { f.add("step"); return 0, nil })
	_, err := p.Run(ctx, pipeline.Options{Hooks: r.bind([]config.Hook{
		{Name: "backup", Before: "a/one", Optional: true}, {Name: "tell", After: "workflow", Always: true},
	})})
	require.Equal(t, fault.Cancelled, fault.ClassOf(err))
	require.Equal(t, []string{"a/one pending", "/ cancelled"}, f.log, "the step does not start")
	require.Equal(t, pipeline.Cancelled, r.ended[0].Status)
}

func TestTheOutputOfHooksIsKeptInPart(t *testing.T) {
	require.Equal(t, "short\n", end("short\n", 10))
	require.Equal(t, "[6 bytes before this are left out]\nlast\n", end("first\nlast\n", 8))
	require.Equal(t, "[6 bytes before this are left out]\nééé", end("éééééé", 7), "whole characters")
	require.Equal(t, "a\uFFFDb", end("a\xffb", 10))

	var f fakeHooks
	r := f.runner()
	h := config.Hook{Name: "h", Before: "workflow"}
	res := pipeline.Result{Key: hookKey(h, pipeline.Key{}), Detail: pipeline.Detail{Log: "hooks/h"}}
	r.record(h, pipeline.Key{}, res, containers.HookOutcome{Output: strings.Repeat("0123456789abcde\n", hookLogLimit/8)})
	require.InDelta(t, hookLogLimit, len(r.logs["hooks/h"]), 200)
	require.True(t, strings.HasSuffix(r.logs["hooks/h"], "0123456789abcde\n"))
}

func TestLastWords(t *testing.T) {
	require.Equal(t, "b", lastWords("a\nb\n \n\t\n"))
	require.Empty(t, lastWords("\n"))
	require.Equal(t, strings.Repeat("x", 300)+"…", lastWords(strings.Repeat("x", 400)))
}

func TestHooksAfterHaveTheTimeThatTheyAskFor(t *testing.T) {
	hour := config.Duration(time.Hour)
	require.Equal(t, pipeline.DefaultCleanupTimeout, hooksTimeout([]config.Hook{{Before: "a/one", Timeout: hour}}))
	require.Greater(t, hooksTimeout([]config.Hook{{After: "a/one", Timeout: hour}, {After: "*", Timeout: hour}}), 2*time.Hour)
}

func TestWhatAHookLacksIsFoundBeforeAnythingStarts(t *testing.T) {
	c := hookExecutor{find: func(ref config.SecretRef) (*dagger.Secret, error) {
		if ref == "env:THERE" {
			return nil, nil
		}
		return nil, fmt.Errorf("%s is not set", ref)
	}}
	refs := map[string]config.SecretRef{"A": "env:THERE", "B": "env:ONE", "C": "env:TWO"}
	err := MissingSecrets([]config.Hook{
		{Name: "backup", Secrets: refs}, {Name: "notify", Secrets: map[string]config.SecretRef{"T": "env:THREE"}, Optional: true},
	}, c.secret)
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeNoSecret})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.EqualError(t, err, "find the secret B of the hook backup: env:ONE is not set\nfind the secret C of the hook backup: env:TWO is not set")

	_, err = c.exec(t.Context(), config.Hook{Name: "notify", Secrets: map[string]config.SecretRef{"T": "env:THREE"}}, pipeline.Key{}, nil)
	require.EqualError(t, err, "find the secret T: env:THREE is not set", "an optional hook fails when it runs")
}

func TestAHookReachesTheClusterAsItsStepDoes(t *testing.T) {
	c := hookExecutor{cluster: &containers.Cluster{}, online: sample(t, contract.Inputs{}).Online}
	for step, want := range map[string]bool{
		"infrastructure/preflight": false, "infrastructure/terraform": false, "infrastructure/node": false,
		"infrastructure/cluster": true, "preorchestrator/gitea": true, "orchestrator/sync": true,
	} {
		stage, name, _ := strings.Cut(step, "/")
		require.Equal(t, want, c.reachable(pipeline.Key{Stage: stage, Name: name}), step)
	}
	require.False(t, c.reachable(pipeline.Key{}), "the workflow, while the node does not run")
	require.True(t, hookExecutor{}.reachable(pipeline.Key{}), "a cluster that is not ours")
}

// TestAHookReachesTheClusterOnlyWhereItAsks: one that does not gets no access, nor does it
// reach the cluster.
func TestAHookReachesTheClusterOnlyWhereItAsks(t *testing.T) {
	for _, asks := range []bool{false, true} {
		c, e := conducted(t, map[string]any{"combinedOutput": "", `"state","kubeconfig"`: secretText(t, "the access")})
		c.hooks.online = func(pipeline.Key) bool { return true }
		h := around(config.Hook{Name: "save", Before: "orchestrator/sync", Kubeconfig: asks})[0]
		_, err := c.hooks.exec(t.Context(), h, pipeline.Key{Stage: "orchestrator", Name: "sync"}, nil)
		require.NoError(t, err)
		for _, part := range []string{`"state","kubeconfig"`, "withServiceBinding", "/slipway/kubeconfig", "KUBECONFIG"} {
			require.Equal(t, asks, strings.Contains(e.all(), part), part)
		}
	}
}
