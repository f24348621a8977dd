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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
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
	step.Register(&b.reg, declared[in, out]("stage", "measure"), step.Verified(func(ctx context.Context, env *step.Env, in in) (out, error) {
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
	}))
	step.Register(&b.reg, declared[in, out]("stage", "always"), step.Once(func(context.Context, *step.Env, in) (out, error) {
		b.calls++
		return out{}, nil
	}))
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
			require.Equal(t, fault.Code("RUN-003"), res.Fault.Code)
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
	require.Equal(t, fault.Code("STO-006"), res.Fault.Code)
	require.Zero(t, b.calls)
}

func TestRegisterTwicePanics(t *testing.T) {
	var reg step.Registry
	run := step.Once(func(context.Context, *step.Env, in) (out, error) { return out{}, nil })
	step.Register(&reg, declared[in, out]("a", "b"), run)
	require.PanicsWithValue(t, "step a/b is registered twice", func() { step.Register(&reg, declared[in, out]("a", "b"), run) })
	require.PanicsWithValue(t, "step a/c has no code", func() { step.Register(&reg, declared[in, out]("a", "c"), step.Code[in, out]{}) })
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
