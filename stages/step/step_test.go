package step_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/step"
)

type in struct {
	Text string `json:"text"`
}

type out struct {
	Length int `json:"length"`
}

// digests are those of a step's surroundings, named for the test.
func digests(name string) journal.Digests {
	return journal.Digests{Input: name, Release: "c", Tools: "t"}
}

// bench runs one step of the registry as the container does.
type bench struct {
	t     *testing.T
	dir   string
	reg   step.Registry
	calls int
	err   error // what the step returns
	stale error // what its Verify returns
	do    func(ctx context.Context, env *step.Env)
	look  func(ctx context.Context, env *step.Env) // during a Verify
	shown bytes.Buffer
}

// declared is a step of a test.
func declared[In, Out any](stage, name string) contract.Step[In, Out] {
	return contract.Step[In, Out]{Spec: contract.Spec{Key: pipeline.Key{Stage: stage, Name: name}}}
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir()}
	step.RegisterVerified(&b.reg, declared[in, out]("stage", "measure"), func(ctx context.Context, env *step.Env, in in) (out, error) {
		b.calls++
		if b.do != nil {
			b.do(ctx, env)
		}
		return out{Length: len(in.Text)}, b.err
	}, func(ctx context.Context, env *step.Env, in in, earlier out) error {
		if b.look != nil {
			b.look(ctx, env)
		}
		require.Equal(t, len(in.Text), earlier.Length)
		return b.stale
	})
	step.Register(&b.reg, declared[in, out]("stage", "always"), func(context.Context, *step.Env, in) (out, error) {
		b.calls++
		return out{}, nil
	})
	return b
}

func (b *bench) run(r contract.Request) (int, contract.Result) {
	b.t.Helper()
	if r.Run == "" {
		r.Run = "r1"
	}
	if r.Deployment == "" {
		r.Deployment = "test"
	}
	if r.Stage == "" {
		r.Stage, r.Step = "stage", "measure"
	}
	if r.Input == nil {
		r.Input = json.RawMessage(`{"text":"four"}`)
	}
	raw, err := json.Marshal(r)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(b.path("request.json"), raw, 0o600))
	return b.main(b.t.Context(), r.Stage+"/"+r.Step)
}

func (b *bench) main(ctx context.Context, args ...string) (int, contract.Result) {
	b.t.Helper()
	args = append(args, "--request", b.path("request.json"), "--result", b.path("result.json"), "--state", b.path("state"))
	code := step.Main(ctx, &b.reg, args, &bytes.Buffer{}, &b.shown)
	var res contract.Result
	raw, err := os.ReadFile(b.path("result.json"))
	if err == nil {
		require.NoError(b.t, json.Unmarshal(raw, &res))
	}
	return code, res
}

func (b *bench) path(parts ...string) string {
	return filepath.Join(append([]string{b.dir}, parts...)...)
}

func (b *bench) log() string {
	raw, err := os.ReadFile(b.path("state", "runs", "r1", "steps", "stage.measure", "log.txt"))
	require.NoError(b.t, err)
	return string(raw)
}

func TestSuccessLeavesResultJournalAndLog(t *testing.T) {
	b := newBench(t)
	b.do = func(_ context.Context, env *step.Env) {
		env.Progress("half of %d", 2)
		fmt.Fprint(env.Output(), "raw output\nits end")
		env.Redact("a password")
		require.NoError(t, env.Keep("seen.txt", []byte("with a password in it")))
	}
	code, res := b.run(contract.Request{Digests: digests("d1")})
	require.Zero(t, code)
	require.Equal(t, contract.Succeeded, res.Status)
	require.JSONEq(t, `{"length":4}`, string(res.Output))
	require.False(t, res.Started.IsZero())
	require.False(t, res.Finished.Before(res.Started))

	kept, err := os.ReadFile(b.path("state", "runs", "r1", "steps", "stage.measure", "result.json"))
	require.NoError(t, err)
	handed, err := os.ReadFile(b.path("result.json"))
	require.NoError(t, err)
	require.Equal(t, handed, kept)
	require.FileExists(t, b.path("state", "runs", "r1", "steps", "stage.measure", "request.json"))
	require.FileExists(t, b.path("state", "journal", "stage.measure", "000000000000.json"))
	seen, err := os.ReadFile(b.path("state", "runs", "r1", "steps", "stage.measure", "seen.txt"))
	require.NoError(t, err)
	require.Equal(t, "with *** in it", string(seen))

	require.Contains(t, b.log(), "slipway: stage/measure: half of 2\n")
	require.Contains(t, b.log(), "raw output\n")
	require.Contains(t, b.log(), "its end\n", "a last line without its end is not lost")
	require.Contains(t, b.shown.String(), "slipway: stage/measure: half of 2\n")
	require.NotContains(t, b.shown.String(), "raw output", "the output of tools is for the log")
}

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
	step.RegisterRepeatable(&b.reg, declared[in, out]("stage", "repeat"), func(ctx context.Context, _ *step.Env, in in) (out, error) {
		b.calls++
		if dryrun.On(ctx) {
			dry++
		}
		if change != "" {
			if err := dryrun.Check(ctx, "%s", change); err != nil {
				return out{}, err
			}
			change = ""
		}
		return out{Length: b.calls}, nil
	})
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
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: contract.CodeNotVerified})
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

	b.stale, b.do = nil, nil
	b.look = func(_ context.Context, env *step.Env) { require.True(t, env.LeftOut) }
	only.LeftOut = true
	_, res = b.run(only)
	require.Equal(t, contract.Reused, res.Status)

	_, res = b.run(contract.Request{Stage: "stage", Step: "always", Digests: digests("d"), VerifyOnly: true})
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: contract.CodeNotVerified})
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

// TestWhatAStepCounts is in its result, also when it fails.
func TestWhatAStepCounts(t *testing.T) {
	b := newBench(t)
	_, res := b.run(contract.Request{Digests: digests("d1")})
	require.Nil(t, res.Counts)
	b.err = errors.New("broken")
	b.do = func(_ context.Context, env *step.Env) {
		env.Redact("hunter2")
		for n := range 200 {
			env.Count("rows", int64(n))
			env.Count("with-hunter2", 1)
		}
		env.Count("missing", 0)
	}
	_, res = b.run(contract.Request{Digests: digests("d2")})
	require.Equal(t, contract.Failed, res.Status)
	require.Equal(t, map[string]int64{"rows": 199, "missing": 0}, res.Counts)
}

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

// TestAnImageThatAPodCannotGet has a code of its own, within what the step failed with.
func TestAnImageThatAPodCannotGet(t *testing.T) {
	b := newBench(t)
	b.err = &fault.Fault{Code: "ABC-003", Class: fault.Step, Fix: "correct it", Err: errors.New("app web: image r.test/web:1 refused by its registry (REG-001), pod web-0")}
	_, res := b.run(contract.Request{Digests: digests("d")})
	require.Equal(t, fault.Code("ABC-003"), res.Fault.Code)
	require.Equal(t, "get the image as slipway explain REG-001 says; correct it", res.Fault.Fix)
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
	require.Equal(t, fault.Code("STP-002"), res.Fault.Code)
	require.Equal(t, "look at the step's log, then run the same command again", res.Fault.Fix)
	require.Contains(t, res.Fault.Error(), "run stage/measure: not finished within 2s; its last message was \"looking at the sky\": waited for the moon")
}

// TestTimeThatWasUsedUpBefore: what no time was left for is not blamed, whatever code and
// remedy its error has.
func TestTimeThatWasUsedUpBefore(t *testing.T) {
	b := newBench(t)
	b.do = func(ctx context.Context, _ *step.Env) {
		<-ctx.Done()
		b.err = &fault.Fault{
			Code: "INF-020", Class: fault.Timeout, Op: "use the storage", Fix: "see that the storage class works",
			Err: fmt.Errorf("%w to wait for pod read: %w", contract.ErrNoTime, context.Cause(ctx)),
		}
	}
	code, res := b.run(contract.Request{Timeout: contract.Duration(time.Second)})
	require.Equal(t, 5, code)
	require.Equal(t, fault.Code("STP-002"), res.Fault.Code)
	require.Contains(t, res.Fault.Error(), "not finished within 1s; its last message was \"nothing\": use the storage: no time is left to wait for pod read: the step's time is up")
	require.Contains(t, res.Fault.Fix, "raise advanced.timeouts.step")
	require.NotContains(t, res.Fault.Fix, "storage class")
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
	for want, err := range map[fault.Code]error{"KUB-003": waited, "STP-002": errors.New("waited for the moon")} {
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
	require.Equal(t, fault.Code("STP-003"), res.Fault.Code)
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
	require.Equal(t, fault.Code("STP-003"), res.Fault.Code)
	require.Contains(t, res.Fault.Error(), "terminated")
}

func TestPanicIsABugWithTheStackInTheLogOnly(t *testing.T) {
	b := newBench(t)
	b.do = func(context.Context, *step.Env) { panic("no way") }
	code, res := b.run(contract.Request{})
	require.Equal(t, 1, code)
	require.Equal(t, fault.Code("STP-004"), res.Fault.Code)
	require.Contains(t, res.Fault.Error(), "panic: no way")
	require.Contains(t, b.log(), "step_test.go")
	require.NotContains(t, b.shown.String(), "step_test.go")
}

func TestSecretsAreRedactedEverywhere(t *testing.T) {
	secret := "correct horse\"battery"
	key := "-----BEGIN KEY-----\nMIIabcdefgh0123456789\nshort\n-----END KEY-----\n"
	b := newBench(t)
	b.do = func(_ context.Context, env *step.Env) {
		env.Redact(secret)
		env.Redact(key)
		env.Progress("the password is %s", secret)
		env.Logger.Info("settings", "password", secret, "key", key)
		for _, c := range secret + "\n" + key + base64.StdEncoding.EncodeToString([]byte(secret)) {
			fmt.Fprint(env.Output(), string(c)) // one character at a time
		}
		b.err = fmt.Errorf("login with %s", secret)
	}
	_, res := b.run(contract.Request{})
	require.Equal(t, "run stage/measure: login with ***", res.Fault.Error())
	journal, err := os.ReadFile(b.path("state", "journal", "stage.measure", "000000000000.json"))
	require.NoError(t, err)
	for _, text := range []string{b.log(), b.shown.String(), string(journal)} {
		require.NotContains(t, text, "correct horse")
		require.NotContains(t, text, "MIIabcdefgh0123456789")
		require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	require.Contains(t, b.log(), "the password is ***")
}

func TestSecretInTheOutputIsABug(t *testing.T) {
	b := newBench(t)
	b.do = func(_ context.Context, env *step.Env) { env.Redact("length") }
	code, res := b.run(contract.Request{})
	require.Equal(t, 1, code)
	require.Equal(t, fault.Code("STP-007"), res.Fault.Code)
	require.Empty(t, res.Output)
}

func TestRequestsThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct{ raw, text string }{
		"other step":    {`{"run":"r1","stage":"stage","step":"always"}`, "is for step stage/always"},
		"unknown field": {`{"run":"r1","stage":"stage","step":"measure","force":true}`, `unknown field "force"`},
		"run id":        {`{"run":"../r1","stage":"stage","step":"measure"}`, "is not a file name"},
		"no JSON":       {`{`, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			require.NoError(t, os.WriteFile(b.path("request.json"), []byte(c.raw), 0o600))
			code, res := b.main(t.Context(), "stage/measure")
			require.Equal(t, 1, code)
			require.Equal(t, fault.Code("STP-005"), res.Fault.Code)
			require.Contains(t, res.Fault.Error(), c.text)
			require.Zero(t, b.calls)
		})
	}
	t.Run("unknown input field", func(t *testing.T) {
		b := newBench(t)
		code, res := b.run(contract.Request{Input: json.RawMessage(`{"txet":"x"}`)})
		require.Equal(t, 1, code)
		require.Contains(t, res.Fault.Error(), `unknown field "txet"`)
	})
	t.Run("unknown step", func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, os.WriteFile(b.path("request.json"), []byte(`{"run":"r1","stage":"stage","step":"nothing"}`), 0o600))
		code, res := b.main(t.Context(), "stage/nothing")
		require.Equal(t, 1, code)
		require.Contains(t, res.Fault.Error(), `step "stage/nothing" does not exist; there are stage/always, stage/measure`)
	})
	t.Run("no step", func(t *testing.T) {
		b := newBench(t)
		code, _ := b.main(t.Context())
		require.Equal(t, 2, code)
	})
}

func TestStateThatCannotBeWritten(t *testing.T) {
	b := newBench(t)
	require.NoError(t, os.WriteFile(b.path("state"), nil, 0o600)) // a file where the volume should be
	code, res := b.run(contract.Request{})
	require.Equal(t, 4, code)
	require.Equal(t, fault.Code("STP-006"), res.Fault.Code)
	require.Zero(t, b.calls)
}

func TestRegisterTwicePanics(t *testing.T) {
	var reg step.Registry
	run := func(context.Context, *step.Env, in) (out, error) { return out{}, nil }
	step.Register(&reg, declared[in, out]("a", "b"), run)
	require.PanicsWithValue(t, "step a/b is registered twice", func() { step.Register(&reg, declared[in, out]("a", "b"), run) })
	require.PanicsWithValue(t, "step a/c has no code", func() { step.Register(&reg, declared[in, out]("a", "c"), nil) })
	require.Panics(t, func() { step.Register(&reg, declared[in, out]("a", "B_"), run) })
}

// TestAccessThatIsGiven comes before what the state volume has, and shows up nowhere.
func TestAccessThatIsGiven(t *testing.T) {
	b := newBench(t)
	file := b.path("access.yaml")
	b.do = func(_ context.Context, env *step.Env) {
		require.Equal(t, file, env.Kubeconfig)
		require.True(t, env.Existing)
		env.Progress("the token is %s", "canary-token-7fk2")
	}
	require.NoError(t, os.WriteFile(file, []byte(`{"users":[{"user":{"token":"canary-token-7fk2"}}]}`), 0o600))
	request := contract.Request{Run: "r1", Stage: "stage", Step: "measure", Deployment: "test", Input: json.RawMessage(`{"text":"four"}`)}
	raw, err := json.Marshal(request)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.path("request.json"), raw, 0o600))
	code, res := b.main(t.Context(), "stage/measure", "--access", file)
	require.Zero(t, code, res.Fault)
	require.Contains(t, b.log(), "the token is ***")
	require.NotContains(t, b.shown.String()+b.log(), "canary-token")

	b.do = func(_ context.Context, env *step.Env) {
		require.Equal(t, b.path("state", "secrets", "kubeconfig"), env.Kubeconfig)
		require.False(t, env.Existing)
	}
	code, _ = b.run(contract.Request{Input: json.RawMessage(`{"text":"three"}`)})
	require.Zero(t, code)
	require.Equal(t, 2, b.calls)
}
