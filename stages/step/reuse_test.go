package step_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestEarlierResultIsReusedWhileItHolds(t *testing.T) {
	b := newBench(t)
	b.run(contract.Request{Digests: digests("d1")})
	code, res := b.run(contract.Request{Digests: digests("d1"), Run: "r2"})
	require.Zero(t, code)
	require.Equal(t, contract.Reused, res.Status)
	require.JSONEq(t, `{"length":4}`, string(res.Output))
	require.Equal(t, 1, b.calls)

	b.stale = errors.New("somebody deleted it")
	_, res = b.run(contract.Request{Digests: digests("d1")})
	require.Equal(t, contract.Succeeded, res.Status)
	require.Equal(t, 2, b.calls, "Verify said that it does not hold")
	require.Contains(t, b.log(), "somebody deleted it")

	b.stale = nil
	b.run(contract.Request{Digests: digests("d2")})
	require.Equal(t, 3, b.calls, "another digest")
	b.run(contract.Request{})
	b.run(contract.Request{})
	require.Equal(t, 5, b.calls, "no digest, no reuse")
}

func TestAStepThatRepeatsIsReusedWhenItWouldChangeNothing(t *testing.T) {
	b := newBench(t)
	change, dry := "it is not there", 0
	step.Register(&b.reg, declared[in, out]("stage", "repeat"), step.Repeatable(func(_ context.Context, env *step.Env, in in) (out, error) {
		b.calls++
		if env.Plan != nil {
			dry++
		}
		if change != "" {
			env.Plan.Change("%s", change)
		}
		if env.Plan == nil {
			change = ""
		}
		return out{Length: b.calls}, nil
	}))
	req := contract.Request{Stage: "stage", Step: "repeat", Digests: digests("d")}
	_, first := b.run(req)
	require.Equal(t, contract.Succeeded, first.Status)
	require.Zero(t, dry, "there was nothing to look at")

	_, second := b.run(req)
	require.Equal(t, contract.Reused, second.Status)
	require.Equal(t, 1, dry)
	require.JSONEq(t, `{"length":2}`, string(second.Output), "what it saw now, not then")

	change = "somebody removed it"
	_, third := b.run(req)
	require.Equal(t, contract.Succeeded, third.Status)
	require.Equal(t, 2, dry)
	require.Empty(t, change, "it was put right")
}

func TestAStepThatMayOnlyBeVerifiedDoesNotRun(t *testing.T) {
	b := newBench(t)
	only := contract.Request{Digests: digests("d"), VerifyOnly: true}
	code, res := b.run(only)
	require.Equal(t, int(fault.Step), code)
	require.Equal(t, contract.Failed, res.Status)
	require.ErrorContains(t, res.Fault, "the journal has no record of the step")
	require.Zero(t, b.calls)
	require.FileExists(t, b.path("state/runs/r1/steps/stage.measure/result.json"))

	b.do = func(context.Context, *step.Env) {
		require.NoFileExists(t, b.path("state/runs/r1/steps/stage.measure/result.json"), "that of the look; this one runs yet")
	}
	_, res = b.run(contract.Request{Digests: digests("d")})
	require.Equal(t, contract.Succeeded, res.Status)
	_, res = b.run(only)
	require.Equal(t, contract.Reused, res.Status)

	b.stale = errors.New("somebody removed it")
	_, res = b.run(only)
	require.ErrorContains(t, res.Fault, "somebody removed it")
	require.Equal(t, 1, b.calls)

	_, res = b.run(contract.Request{Stage: "stage", Step: "always", Digests: digests("d"), VerifyOnly: true})
	require.ErrorContains(t, res.Fault, "the step runs every time")
}

func TestStepWithoutVerifyRunsEveryTime(t *testing.T) {
	b := newBench(t)
	for range 2 {
		_, res := b.run(contract.Request{Stage: "stage", Step: "always", Digests: digests("d1")})
		require.Equal(t, contract.Succeeded, res.Status)
	}
	require.Equal(t, 2, b.calls)
}

func TestDamagedJournalIsNoResult(t *testing.T) {
	b := newBench(t)
	b.run(contract.Request{Digests: digests("d1")})
	require.NoError(t, os.WriteFile(b.path("state", "journal", "stage.measure", "000000000000.json"), []byte(`{"ver`), 0o600))
	_, res := b.run(contract.Request{Digests: digests("d1")})
	require.Equal(t, contract.Succeeded, res.Status)
	require.Equal(t, 2, b.calls)
}

func TestFailureIsRunAgain(t *testing.T) {
	b := newBench(t)
	b.err = &fault.Fault{Code: "ABC-001", Class: fault.Step, Op: "do it", Fix: "do it better", Err: errors.New("broken")}
	code, res := b.run(contract.Request{Digests: digests("d1")})
	require.Equal(t, 4, code)
	require.Equal(t, contract.Failed, res.Status)
	require.Equal(t, fault.Code("ABC-001"), res.Fault.Code)
	require.Equal(t, "do it: broken", res.Fault.Error())
	require.Equal(t, "steps/stage.measure/log.txt", res.Fault.Log)

	b.err = nil
	code, res = b.run(contract.Request{Digests: digests("d1")})
	require.Zero(t, code)
	require.Equal(t, contract.Succeeded, res.Status)
	require.Equal(t, 2, b.calls)
}
