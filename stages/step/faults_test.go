package step_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestErrorsGetACode(t *testing.T) {
	wrapped := fmt.Errorf("step three: %w", &fault.Fault{Code: "ABC-002", Class: fault.Locked, Op: "lock", Fix: "wait", Err: errors.New("held")})
	for name, c := range map[string]struct {
		err   error
		code  fault.Code
		class fault.Class
		text  string
	}{
		"plain":   {errors.New("broken"), "STP-001", fault.Step, "run stage/measure: broken"},
		"wrapped": {wrapped, "ABC-002", fault.Locked, "step three: lock: held"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.err = c.err
			code, res := b.run(contract.Request{})
			require.Equal(t, int(c.class), code)
			require.Equal(t, c.code, res.Fault.Code)
			require.Equal(t, c.text, res.Fault.Error())
			require.NotEmpty(t, res.Fault.Fix)
			require.NotContains(t, res.Fault.Fix, "slipway install", "it may be a destroy")
		})
	}
}

func TestTimeoutSaysWhatWasAwaited(t *testing.T) {
	b := newBench(t)
	b.do = func(ctx context.Context, env *step.Env) {
		env.Progress("looking at the %s", "sky")
		<-ctx.Done()
		b.err = fmt.Errorf("waited for the moon: %w", ctx.Err())
	}
	code, res := b.run(contract.Request{Timeout: contract.Duration(2 * time.Second)})
	require.Equal(t, 5, code)
	require.Equal(t, fault.Code("RUN-002"), res.Fault.Code)
	require.Equal(t, "look at the step's log, then run the same command again", res.Fault.Fix)
	require.Contains(t, res.Fault.Error(), "run stage/measure: not finished within 2s; its last message was \"looking at the sky\": waited for the moon")
}

// TestWhatAStepSaysTellsWhoStartedIt: in one session several processes see it.
func TestWhatAStepSaysTellsWhoStartedIt(t *testing.T) {
	t.Setenv(contract.OriginVariable, "me")
	b := newBench(t)
	b.do = func(_ context.Context, env *step.Env) { env.Progress("at it") }
	_, res := b.run(contract.Request{})
	require.Nil(t, res.Fault)
	require.Contains(t, b.shown.String(), "slipway[me]: stage/measure: at it\n")
	require.Contains(t, b.log(), "slipway: stage/measure: at it\n")
}

// TestTheLookKnowsWhatTheTimeWentInto: the time of a step is up while it looks at
// an earlier result.
func TestTheLookKnowsWhatTheTimeWentInto(t *testing.T) {
	waited := &fault.Fault{Code: "KUB-003", Class: fault.Timeout, Fix: "start them", Err: errors.New("waited for pods")}
	for want, err := range map[fault.Code]error{"KUB-003": waited, "RUN-002": errors.New("waited for the moon")} {
		b := newBench(t)
		_, res := b.run(contract.Request{Digests: digests("d")})
		require.Nil(t, res.Fault)
		b.look = func(ctx context.Context, _ *step.Env) { <-ctx.Done(); time.Sleep(10 * time.Millisecond) }
		b.stale = err
		code, res := b.run(contract.Request{Digests: digests("d"), Timeout: contract.Duration(2 * time.Second)})
		require.Equal(t, 5, code)
		require.Equal(t, want, res.Fault.Code, res.Fault.Error())
		require.Contains(t, res.Fault.Error(), err.Error())
		require.NotContains(t, res.Fault.Fix, "free space")
		require.Equal(t, 1, b.calls)
	}
}

func TestCancellationIsNoFailureOfTheStep(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.do = func(ctx context.Context, _ *step.Env) {
		cancel()
		<-ctx.Done()
		b.err = ctx.Err()
	}
	raw := `{"run":"r1","stage":"stage","step":"measure","timeout":"1m","deployment":"test","digests":{"input":"d","config":"c","tools":"t"},"input":{"text":"four"}}`
	require.NoError(t, os.WriteFile(b.path("request.json"), []byte(raw), 0o600))
	code, res := b.main(ctx, "stage/measure")
	require.Equal(t, 7, code)
	require.Equal(t, fault.Code("RUN-001"), res.Fault.Code)
	require.Equal(t, "run the same command again; finished steps are not repeated", res.Fault.Fix)
}

func TestSignalCancelsTheStep(t *testing.T) {
	b := newBench(t)
	b.do = func(ctx context.Context, _ *step.Env) {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		<-ctx.Done()
		b.err = ctx.Err()
	}
	code, res := b.run(contract.Request{Timeout: contract.Duration(time.Minute)})
	require.Equal(t, 7, code)
	require.Equal(t, fault.Code("RUN-001"), res.Fault.Code)
	require.Contains(t, res.Fault.Error(), "terminated")
}

func TestPanicIsABugWithTheStackInTheLogOnly(t *testing.T) {
	b := newBench(t)
	b.do = func(context.Context, *step.Env) { panic("no way") }
	code, res := b.run(contract.Request{})
	require.Equal(t, 1, code)
	require.Equal(t, fault.Code("RUN-003"), res.Fault.Code)
	require.Contains(t, res.Fault.Error(), "panic: no way")
	require.Contains(t, b.log(), "step_test.go")
	require.NotContains(t, b.shown.String(), "step_test.go")
}
