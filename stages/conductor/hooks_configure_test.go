package conductor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// around are hooks of the workflow configure.
func around(hooks ...config.Hook) []config.Hook {
	for i := range hooks {
		hooks[i].SetDefaults()
		hooks[i].Run = []string{"check"}
		if hooks[i].Workflows == nil {
			hooks[i].Workflows = []string{config.Configure}
		}
	}
	return hooks
}

// configure does what slipway configure does: it asks, which ends with outcome,
// between the hooks.
func (f *fakeHooks) configure(ctx context.Context, stop <-chan struct{}, outcome error, hooks ...config.Hook) error {
	cfg := config.Default()
	cfg.Hooks = around(hooks...)
	r := f.runner()
	r.workflow = config.Configure
	c := configureHooks{
		Configuring: Configuring{Run: r.run, Started: time.Now().Add(-time.Minute)},
		hooks:       cfg.HooksOf(config.Configure), stop: stop, runner: r,
	}
	if err := c.before(ctx); err != nil {
		return err
	}
	f.add("ask")
	return c.after(ctx, outcome)
}

func TestHooksAroundConfiguringRunInTheOrderOfTheFile(t *testing.T) {
	var f fakeHooks
	err := f.configure(t.Context(), nil, nil,
		config.Hook{Name: "last", After: "workflow"},
		config.Hook{Name: "first", Before: "workflow"},
		config.Hook{Name: "install", Before: "workflow", Workflows: []string{config.Install}},
		config.Hook{Name: "both", Before: "workflow", Workflows: []string{config.Install, config.Configure}},
		config.Hook{Name: "tell", After: "workflow", Always: true},
	)
	require.NoError(t, err)
	require.Equal(t, []string{
		"first before configuring", "both before configuring", "ask", "last after configuring", "tell after configuring",
	}, f.log)
	require.Equal(t, "hooks/first: running", f.events[0])
	require.Regexp(t, `^hooks/first: succeeded after `, f.events[1])
	require.Len(t, f.events, 8)

	first := f.envs["first"]
	require.Equal(t, "configure", first["SLIPWAY_WORKFLOW"])
	require.Equal(t, "pending", first["SLIPWAY_STATUS"])
	require.Equal(t, "20260102-150405-1a2b3c", first["SLIPWAY_RUN"])
	last := f.envs["last"]
	require.Equal(t, "succeeded", last["SLIPWAY_STATUS"])
	require.Regexp(t, `^6\d\.\d{3}$`, last["SLIPWAY_SECONDS"])
	require.Equal(t, "", last["SLIPWAY_STAGE"]+last["SLIPWAY_STEP"]+last["SLIPWAY_ERROR"])
}

func TestAHookBeforeConfiguringKeepsItFromAsking(t *testing.T) {
	f := fakeHooks{outcomes: map[string]containers.HookOutcome{
		"gate": {ExitCode: 3, Output: "the policy:\n\n\t\x1b[31mno changes on Fridays\x1b[0m\n"},
	}}
	err := f.configure(t.Context(), nil, nil,
		config.Hook{Name: "gate", Before: "workflow"}, config.Hook{Name: "second", Before: "workflow"},
		config.Hook{Name: "celebrate", After: "workflow"}, config.Hook{Name: "tell", After: "workflow", Always: true})
	require.Equal(t, []string{"gate before configuring", "tell after configuring"}, f.log)
	require.EqualError(t, err, `run the hook gate before configuring: exit status 3: no changes on Fridays
  its output ends with:
    the policy:
     no changes on Fridays`)
	got, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, codeHookFailed, got.Code)
	require.Equal(t, fault.Step, got.Class)
	require.Empty(t, got.Log, "there is no record")
	require.Contains(t, got.Fix, "run the same command again: nothing was asked or written; optional: true")
	require.Regexp(t, `^hooks/gate: failed after .*exit status 3: no changes on Fridays$`, f.events[1], "one line")
	require.Equal(t, "failed", f.envs["tell"]["SLIPWAY_STATUS"])
	require.Equal(t, "HOK-001", f.envs["tell"]["SLIPWAY_ERROR_CODE"])
	require.Contains(t, f.envs["tell"]["SLIPWAY_ERROR"], "exit status 3")
}

func TestAHookAfterConfiguringLeavesWhatWasWritten(t *testing.T) {
	f := fakeHooks{
		outcomes: map[string]containers.HookOutcome{"commit": {ExitCode: 1, Output: "rejected\n"}, "slow": {TimedOut: true, Output: "a\nb\n"}},
		errs:     map[string]error{"lost": errors.New("no such image")},
	}
	err := f.configure(t.Context(), nil, nil,
		config.Hook{Name: "commit", After: "workflow"}, config.Hook{Name: "lost", After: "workflow"},
		config.Hook{Name: "slow", After: "workflow"}, config.Hook{Name: "tell", After: "workflow"})
	require.Equal(t, []string{
		"ask", "commit after configuring", "lost after configuring", "slow after configuring", "tell after configuring",
	}, f.log, "one that fails keeps no other from running")
	require.EqualError(t, err, `run the hook commit after configuring: exit status 1: rejected
run the hook lost after configuring: no such image
run the hook slow after configuring: it did not end within 5m: b
  its output ends with:
    a
    b`)
	require.ErrorIs(t, err, &fault.Fault{Code: codeHookFailed})
	got, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Contains(t, got.Fix, "run the same command again: the configuration that was written stays")
}

func TestAHookAfterConfiguringThatFailedRunsAlwaysOrNot(t *testing.T) {
	for status, outcome := range map[string]*fault.Fault{
		"failed":    {Code: config.CodeInvalid, Class: fault.Usage, Op: "configure", Err: errors.New("no answers")},
		"cancelled": {Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "configure", Err: errors.New("you left")},
	} {
		f := fakeHooks{outcomes: map[string]containers.HookOutcome{"tell": {ExitCode: 1}}}
		err := f.configure(t.Context(), nil, outcome,
			config.Hook{Name: "celebrate", After: "workflow"}, config.Hook{Name: "tell", After: "workflow", Always: true})
		require.Equal(t, []string{"ask", "tell after configuring"}, f.log)
		require.Equal(t, status, f.envs["tell"]["SLIPWAY_STATUS"])
		require.Equal(t, string(outcome.Code), f.envs["tell"]["SLIPWAY_ERROR_CODE"])
		require.Equal(t, outcome.Error(), f.envs["tell"]["SLIPWAY_ERROR"])
		require.EqualError(t, err, outcome.Error()+"\nrun the hook tell after configuring: exit status 1")
		require.Equal(t, outcome.Class, fault.ClassOf(err), "what went wrong first decides")
		fix := ""
		for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
			if f, ok := errors.AsType[*fault.Fault](one); ok && f.Code == codeHookFailed {
				fix = f.Fix
			}
		}
		require.Contains(t, fix, "run the same command again: nothing was written; optional: true")
	}
}

func TestAnOptionalHookAroundConfiguringOnlyWarns(t *testing.T) {
	f := fakeHooks{outcomes: map[string]containers.HookOutcome{"notify": {ExitCode: 22, Output: "POST\n404\n"}}}
	err := f.configure(t.Context(), nil, nil,
		config.Hook{Name: "notify", Before: "workflow", Optional: true}, config.Hook{Name: "lost", After: "workflow", Optional: true})
	require.NoError(t, err)
	require.Equal(t, []string{"notify before configuring", "ask", "lost after configuring"}, f.log)
	require.Regexp(t, `^hooks/notify: warned after .*exit status 22: 404$`, f.events[1])
}

func TestAnInterruptBeforeConfiguringKeepsItFromAsking(t *testing.T) {
	hooks := []config.Hook{
		{Name: "gate", Before: "workflow"}, {Name: "second", Before: "workflow"}, {Name: "tell", After: "workflow", Always: true},
	}
	stop := make(chan struct{})
	close(stop)
	var f fakeHooks
	err := f.configure(t.Context(), stop, nil, hooks...)
	require.ErrorIs(t, err, &fault.Fault{Code: pipeline.CodeCancelled})
	require.ErrorIs(t, err, pipeline.ErrStopped)
	require.Equal(t, fault.Cancelled, fault.ClassOf(err))
	require.Equal(t, []string{"tell after configuring"}, f.log)
	require.Equal(t, "cancelled", f.envs["tell"]["SLIPWAY_STATUS"])

	interrupt := &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "run", Err: errors.New("interrupted")}
	for cause, want := range map[error]string{interrupt: "run: interrupted", context.Canceled: "configure: context canceled"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f = fakeHooks{}
		r := f.runner()
		r.workflow = config.Configure
		fake := r.exec
		r.exec = func(ctx context.Context, h config.Hook, on pipeline.Key, env map[string]string) (containers.HookOutcome, error) {
			out, err := fake(ctx, h, on, env)
			if h.Name == "gate" {
				cancel(cause)
				return out, context.Cause(ctx)
			}
			return out, errors.Join(err, ctx.Err())
		}
		err := configureHooks{Configuring: Configuring{Started: time.Now()}, hooks: around(hooks...), runner: r}.before(ctx)
		require.EqualError(t, err, want)
		require.Equal(t, fault.Cancelled, fault.ClassOf(err))
		require.Equal(t, []string{"gate before configuring", "tell after configuring"}, f.log, "cancellation does not reach the last")
	}
}

func TestWhatAHookAroundConfiguringLacksIsFoundBeforeAnythingStarts(t *testing.T) {
	c, e := conducted(t, nil)
	c.hooks.find = func(config.SecretRef) (*dagger.Secret, error) { return nil, errors.New("T is not set") }
	c.opts.Config.Hooks = around(
		config.Hook{Name: "gate", Before: "workflow"},
		config.Hook{Name: "tell", After: "workflow", Always: true, Secrets: map[string]config.SecretRef{"TOKEN": "env:T"}},
		config.Hook{Name: "other", After: "workflow", Workflows: []string{config.Install}, Secrets: map[string]config.SecretRef{"TOKEN": "env:U"}},
	)
	err := c.BeforeConfigure(t.Context(), Configuring{})
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeNoSecret})
	require.EqualError(t, err, "find the secret TOKEN of the hook tell: T is not set")
	require.Empty(t, e.all(), "no hook ran")
}

func TestAHookAroundConfiguringReadsTheConfigurationAndReachesNothing(t *testing.T) {
	for name, provider := range map[string]func(*Options){
		"with a cluster of ours": func(*Options) {},
		"without a provider":     func(o *Options) { o.Provider = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c, e := conducted(t, map[string]any{"combinedOutput": "one\ntwo\n"})
			opts := c.opts
			provider(&opts)
			opts.State = State{URL: "s3://bucket", Credentials: map[string]*dagger.Secret{"AWS_SECRET_ACCESS_KEY": nil}}
			c, err := New(opts)
			require.NoError(t, err)
			c.opts.Config.Hooks = around(config.Hook{Name: "check", Before: "workflow"}, config.Hook{Name: "commit", After: "workflow"})
			require.NoError(t, c.BeforeConfigure(t.Context(), Configuring{Run: "one", File: []byte("global: {name: old}\n")}))
			before := e.all()
			require.Regexp(t, `withFile\([^()]*path:"/slipway/config.yaml"`, before)
			require.Equal(t, []string{"global: {name: old}\n"}, e.taken)
			require.NotContains(t, before, "name: old", "the engine shows its arguments")
			require.Regexp(t, `permissions:420\b`, before, "0644: anybody may read it")
			require.Regexp(t, variable("SLIPWAY_CONFIG_FILE", "/slipway/config.yaml"), before)
			require.Regexp(t, variable("SLIPWAY_RUN", "one"), before)
			require.Contains(t, before, `args:["timeout"`)

			e.exit = 3
			err = c.AfterConfigure(t.Context(), Configuring{Run: "one", File: []byte("global: {name: new}\n")}, nil)
			require.EqualError(t, err, "run the hook commit after configuring: exit status 3: two\n  its output ends with:\n    one\n    two")
			require.Equal(t, "global: {name: new}\n", e.taken[1])

			require.NotContains(t, e.all(), "withServiceBinding", "no cluster")
			require.NotContains(t, e.all(), "withMountedCache", "no state volume")
			require.NotContains(t, e.all(), "SLIPWAY_STATE_URL", "no state")
			require.NotContains(t, e.all(), "kubeconfig")
		})
	}
}

// variable is how the engine is asked for a variable of the environment.
func variable(name, value string) string {
	name, value = fmt.Sprintf("name:%q", name), fmt.Sprintf("value:%q", value)
	return `withEnvVariable\((` + name + ", " + value + "|" + value + ", " + name + `)\)`
}

func TestOnlyHooksAroundConfiguringHaveTheFile(t *testing.T) {
	c, e := conducted(t, map[string]any{"combinedOutput": ""})
	h := around(config.Hook{Name: "check", Before: "workflow"})[0]
	_, err := c.hooks.exec(t.Context(), h, pipeline.Key{}, map[string]string{"SLIPWAY_RUN": "one"})
	require.NoError(t, err)
	require.Contains(t, e.all(), "SLIPWAY_RUN")
	require.NotContains(t, e.all(), "SLIPWAY_CONFIG_FILE")
	require.NotContains(t, e.all(), "/slipway/config.yaml")
}

func TestTheEndOfAnOutputIsInTheErrorWhereNoRecordKeepsIt(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %d of many\r\n\n", i)
	}
	err := errors.New("exit status 1")
	got := withOutput(err, long.String())
	require.ErrorIs(t, got, err)
	lines := strings.Split(got.Error(), "\n")
	require.Len(t, lines, 2+outputLines)
	require.Equal(t, "    line 4980 of many", lines[2])
	require.Equal(t, "    line 4999 of many", lines[len(lines)-1])
	require.Equal(t, err, withOutput(err, "one line, which the error has\n"))
	require.Equal(t, err, withOutput(err, ""))
}
