package conductor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

const (
	firstStep  = `"slipway","step","preorchestrator/namespaces"`
	secondStep = `"slipway","step","preorchestrator/requires"`
	lockLost   = `{"code":"LOK-002","class":6,"op":"hold the deployment's lock","fix":"see","message":"bob took it over"}`
)

// loseWhile conducts a workflow of two steps, one after the other, whose lock is lost while
// the first one runs, which lasts for d and then leaves result.
func loseWhile(t *testing.T, d time.Duration, result string, w stages.Workflow) (*report.Run, *engine, error) {
	t.Helper()
	c, e := conducted(t, map[string]any{
		firstStep: result, secondStep: `{"status":"succeeded","output":{}}`, `"slipway","state","keep"`: "{}",
		watching: "slipway-fault: " + lockLost,
	})
	c.opts.ReleaseDir = c.opts.Client.Directory()
	lost, ended := make(chan struct{}), make(chan struct{})
	e.exit, e.fails = 6, watching
	e.lasts[watching], e.lasts[firstStep] = lost, ended
	time.AfterFunc(time.Minute, func() { close(lost) })
	time.AfterFunc(time.Minute+d, func() { close(ended) })
	two := twoSteps()
	w.Name, w.Wire = two.Name, two.Wire
	record, err := c.Conduct(t.Context(), w)
	return record, e, err
}

// twoSteps is an install that runs firstStep, and then secondStep.
func twoSteps() stages.Workflow {
	return stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
		first := stages.Add(g, contract.NamespacesStep(), func() contract.NamespacesInput { return contract.NamespacesInput{} })
		stages.Add(g, contract.RequiresStep(), func() contract.Nothing { return contract.Nothing{} }, first)
		return nil
	}}
}

// TestARunThatLosesTheLock lets what runs end, starts nothing else, and leaves to the other
// run what is the deployment's.
func TestARunThatLosesTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		lasts  time.Duration // the first step, from then on
		result string
		first  pipeline.Status
	}{
		"a step that notices first":  {-time.Second, `{"status":"failed","fault":` + lockLost + `}`, pipeline.Failed},
		"a step that notices itself": {time.Second, `{"status":"failed","fault":` + lockLost + `}`, pipeline.Failed},
		"a step that succeeds":       {time.Second, `{"status":"succeeded","output":{}}`, pipeline.Succeeded},
		"a step that goes on":        {time.Hour, "", pipeline.Cancelled},
	} {
		for _, removes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					record, e, err := loseWhile(t, c.lasts, c.result, stages.Workflow{Removes: removes})
					require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
					require.ErrorContains(t, err, "bob took it over")
					require.Equal(t, fault.Locked, fault.ClassOf(err))
					require.LessOrEqual(t, time.Since(start), time.Minute+lock.DefaultBeat+lock.DefaultGrace)
					require.Equal(t, report.Failed, record.Outcome)
					require.Equal(t, c.first, record.Steps[0].Status)
					require.NotEqual(t, pipeline.Succeeded, record.Steps[1].Status)
					asked := e.all()
					require.NotContains(t, asked, secondStep)
					require.NotContains(t, asked, "diagnosis/collect")
					require.NotContains(t, asked, `"purge"`)
					require.Contains(t, asked, "stop(kill:true)", "what holds the lock may stand still")
					require.NotContains(t, asked, `\"runtime\"`)
					require.Contains(t, asked, `"slipway","state","keep"`, "what the run did is known")
				})
			})
		}
	}
}

// TestALockLostAtTheVeryEnd: a run does not succeed without it.
func TestALockLostAtTheVeryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := conducted(t, map[string]any{
			firstStep: `{"status":"succeeded","output":{}}`, `"slipway","state","keep"`: "{}", watching: "slipway-fault: " + lockLost,
		})
		c.opts.ReleaseDir = c.opts.Client.Directory()
		lost := make(chan struct{})
		e.exit, e.fails, e.lasts[watching] = 6, watching, lost
		record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
			stages.Add(g, contract.NamespacesStep(), func() contract.NamespacesInput {
				close(lost)
				synctest.Wait()
				return contract.NamespacesInput{}
			})
			return nil
		}})
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
		require.Equal(t, report.Failed, record.Outcome)
	})
}

// TestARunThatIsInterruptedBeforeItHasTheLock says so, also where all of its steps need none.
func TestARunThatIsInterruptedBeforeItHasTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := conducted(t, map[string]any{`"step","infrastructure/preflight"`: `{"status":"succeeded","output":{}}`})
		c.opts.ReleaseDir, c.opts.Images.Manifests = c.opts.Client.Directory(), c.opts.Client.Directory()
		e.lasts[`"slipway","state","open"`] = nil
		interrupt := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(interrupt) })
		record, err := c.Conduct(ctx, stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
			stages.Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
			return nil
		}})
		require.Nil(t, record)
		require.ErrorIs(t, err, interrupt)
	})
}

// TestALockLostWhileTheRecordOfAFailureIsWritten: that the step has failed does not hide it.
func TestALockLostWhileTheRecordOfAFailureIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep = `"slipway","state","keep"`
		c, e := conducted(t, map[string]any{firstStep: `{"status":"failed","fault":{"code":"NS-001","class":4,"message":"forbidden"}}`, keep: "slipway-fault: " + lockLost})
		c.opts.ReleaseDir = c.opts.Client.Directory()
		ended := make(chan struct{})
		e.fails, e.lasts[firstStep] = keep, ended
		time.AfterFunc(time.Minute, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.exit = 6
			close(ended)
		})
		_, err := c.Conduct(t.Context(), twoSteps())
		require.Equal(t, fault.Locked, fault.ClassOf(err))
		require.Equal(t, 1, strings.Count(err.Error(), "bob took it over"))
		require.ErrorContains(t, err, "forbidden")
	})
}

// TestALockLostAtTheEnd of a run, while its record is written or the state removed: what holds it
// may stand still, and is not waited for.
func TestALockLostAtTheEnd(t *testing.T) {
	for what, c := range map[string]struct {
		command string // which hears of it
		removes bool
		outcome report.Outcome
	}{
		"the record is written": {`"slipway","state","keep"`, false, report.Succeeded},
		"the state is removed":  {`"slipway","state","purge"`, true, report.Failed},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := map[string]any{
					firstStep: `{"status":"succeeded","output":{}}`, secondStep: `{"status":"succeeded","output":{}}`,
					`"slipway","state","keep"`: "{}", `"state","show"`: "{}",
				}
				answers[c.command] = "slipway-fault: " + lockLost
				conductor, e := conducted(t, answers)
				conductor.opts.ReleaseDir = conductor.opts.Client.Directory()
				ended := make(chan struct{})
				e.fails, e.lasts[firstStep] = c.command, ended
				time.AfterFunc(time.Minute, func() { // the run's beginning is written
					e.mu.Lock()
					defer e.mu.Unlock()
					e.exit = 6
					close(ended)
				})
				w := twoSteps()
				if c.removes {
					w.Name, w.Removes = config.Destroy, true
				}
				var warned []string
				conductor.opts.Warn = func(text string) { warned = append(warned, text) }
				record, err := conductor.Conduct(t.Context(), w)
				require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
				require.Equal(t, fault.Locked, fault.ClassOf(err))
				require.Empty(t, warned)
				require.Equal(t, c.outcome, record.Outcome)
				require.Contains(t, e.all(), "stop(kill:true)")
				require.NotContains(t, e.all(), "{stop}")
			})
		})
	}
}

// TestALockThatCannotBeReleased: what holds it stands still, and the work is done.
func TestALockThatCannotBeReleased(t *testing.T) {
	c, e := conducted(t, map[string]any{firstStep: `{"status":"succeeded","output":{}}`, `"slipway","state","keep"`: "{}"})
	c.opts.ReleaseDir = c.opts.Client.Directory()
	e.problems = map[string]string{"{stop}": "context deadline exceeded"}
	record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
		stages.Add(g, contract.NamespacesStep(), func() contract.NamespacesInput { return contract.NamespacesInput{} })
		return nil
	}})
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeRelease})
	require.ErrorContains(t, err, "does not end: ")
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.Equal(t, report.Succeeded, record.Outcome)
}

// TestAWatchThatIsKilledIsNotALoss: it is started again, once.
func TestAWatchThatIsKilledIsNotALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &deploymentLock{lost: make(chan struct{}), halt: make(chan error, 1), end: func(error) {}}
		c, e := conducted(t, map[string]any{watching: "killed"})
		killed := make(chan struct{})
		e.exit, e.fails, e.lasts[watching] = 137, watching, killed
		ctx, cancel := context.WithCancel(t.Context())
		go l.watch(ctx, c.commands, "r1")
		synctest.Wait()
		killed <- struct{}{}
		synctest.Wait()
		require.NoError(t, l.loss())
		killed <- struct{}{}
		synctest.Wait()
		require.ErrorContains(t, l.loss(), "killed")
		require.ErrorContains(t, <-l.halt, "killed")
		cancel()
	})
}

// TestHooksOfARunThatLosesTheLock: one that runs is ended, and none is begun, also not one
// that always runs.
func TestHooksOfARunThatLosesTheLock(t *testing.T) {
	f := &fakeHooks{envs: map[string]map[string]string{}}
	l := &deploymentLock{lost: make(chan struct{}), why: &fault.Fault{Code: lock.CodeLost, Class: fault.Locked, Err: errors.New("bob took it over")}}
	r := f.runner()
	r.lock = l
	r.exec = func(ctx context.Context, h config.Hook, _ pipeline.Key, _ map[string]string) (containers.HookOutcome, error) {
		f.add(h.Name)
		close(l.lost)
		<-ctx.Done()
		return containers.HookOutcome{}, context.Cause(ctx)
	}
	hook := config.Hook{Name: "runs", After: "a/one", Always: true}
	hook.SetDefaults()
	bound := r.bind([]config.Hook{hook})
	err := bound[0].After(t.Context(), pipeline.Result{Status: pipeline.Succeeded})
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	require.NoError(t, bound[0].After(t.Context(), pipeline.Result{Status: pipeline.Failed}))
	require.Equal(t, []string{"runs"}, f.log)
}

// TestALockThatOthersHold: that is told once, whatever waits for the lock, and as what it is.
func TestALockThatOthersHold(t *testing.T) {
	c, e := conducted(t, nil)
	e.problems = map[string]string{`"state","hold"`: `slipway-fault: {"code":"LOK-001","class":6,"op":"take the deployment's lock","message":"alice@desk (install, run r0) has had the lock"}`}
	c.opts.ReleaseDir = c.opts.Client.Directory()
	var seen []pipeline.Event
	c.opts.Observe = func(e pipeline.Event) { seen = append(seen, e) }
	hooked := false
	before := func(context.Context, pipeline.Key) error { hooked = true; return nil }
	after := func(context.Context, pipeline.Result) error { hooked = true; return nil }
	c.opts.Hooks = []pipeline.Hook{{Before: before, After: after}, {Step: pipeline.EveryStep, Before: before, After: after}, {Step: "preorchestrator", After: after}}
	c, err := New(c.opts)
	require.NoError(t, err)
	record, err := c.Conduct(t.Context(), twoSteps())
	require.Nil(t, record)
	require.EqualError(t, err, "take the deployment's lock: alice@desk (install, run r0) has had the lock")
	require.Equal(t, fault.Locked, fault.ClassOf(err))
	require.Empty(t, seen, "what never began is not told to be cancelled")
	require.False(t, hooked)
}
