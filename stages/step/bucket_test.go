package step_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestTheStateIsInABucket: what a step did and said is there, another machine
// reuses it, and no credential gets there. A directory stands for the bucket.
func TestTheStateIsInABucket(t *testing.T) {
	bucket := t.TempDir()
	t.Setenv(contract.StateURLVariable, "file://"+bucket)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "c4nary-secret")
	first := newBench(t)
	first.do = func(_ context.Context, env *step.Env) {
		env.Progress("tells %s", os.Getenv("AWS_SECRET_ACCESS_KEY"))
		require.NoError(t, env.Keep("seen.txt", []byte(fmt.Sprint(os.Environ()))))
	}
	code, res := first.run(contract.Request{Digests: digests("d1")})
	require.Zero(t, code, first.shown.String())
	require.Equal(t, contract.Succeeded, res.Status)
	for _, name := range []string{"request.json", "result.json", "log.txt", "seen.txt"} {
		require.FileExists(t, filepath.Join(bucket, "runs/r1/steps/stage.measure", name))
	}
	require.NoDirExists(t, first.path("state/journal"), "the volume is working space")
	log, err := os.ReadFile(filepath.Join(bucket, "runs/r1/steps/stage.measure/log.txt"))
	require.NoError(t, err)
	require.Contains(t, string(log), "tells ***")
	require.Contains(t, string(log), "step succeeded", "to its end")
	require.NoError(t, filepath.WalkDir(bucket, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(t, string(text), "c4nary", path)
		return err
	}))

	second := newBench(t) // another volume
	code, res = second.run(contract.Request{Run: "r2", Digests: digests("d1")})
	require.Zero(t, code)
	require.Equal(t, contract.Reused, res.Status)
	require.Zero(t, second.calls)

	s, err := store.Open(t.Context(), "file://"+bucket, store.Options{})
	require.NoError(t, err)
	last, err := journal.On(s, "test").Last(t.Context(), "stage", "measure")
	require.NoError(t, err)
	require.Equal(t, "r1", last.Run)

	t.Run("the lock counts that is there", func(t *testing.T) {
		held, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{User: "u", Run: "r3"})
		require.NoError(t, err)
		code, res := second.run(contract.Request{Run: "r4", Locked: true})
		require.Equal(t, int(fault.Locked), code)
		require.Equal(t, lock.CodeLost, res.Fault.Code)
		require.NoError(t, lease.Release(held))
	})
}

// TestAStepThatRunsIsSeenInTheBucket: its request is there and no result, whatever
// a look at its earlier result has left, so that one that is killed is not taken for
// one that has not run.
func TestAStepThatRunsIsSeenInTheBucket(t *testing.T) {
	bucket := t.TempDir()
	t.Setenv(contract.StateURLVariable, "file://"+bucket)
	dir := filepath.Join(bucket, "runs/r1/steps/stage.measure")
	b := newBench(t)
	_, res := b.run(contract.Request{Digests: digests("d1"), VerifyOnly: true})
	require.Equal(t, contract.Failed, res.Status)
	require.FileExists(t, filepath.Join(dir, "result.json"))

	b.do = func(context.Context, *step.Env) {
		require.NoFileExists(t, filepath.Join(dir, "result.json"))
		require.FileExists(t, filepath.Join(dir, "log.txt"))
		request, err := os.ReadFile(filepath.Join(dir, "request.json"))
		require.NoError(t, err)
		require.NotContains(t, string(request), "verifyOnly")
	}
	code, _ := b.run(contract.Request{Digests: digests("d1")})
	require.Zero(t, code, b.shown.String())
	require.Equal(t, 1, b.calls)
	require.FileExists(t, filepath.Join(dir, "result.json"))
}

// TestAJournalThatCannotBeWritten: what the store says is what is told.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	bucket := t.TempDir()
	t.Setenv(contract.StateURLVariable, "file://"+bucket)
	b := newBench(t)
	b.do = func(context.Context, *step.Env) {
		require.NoError(t, os.RemoveAll(filepath.Join(bucket, "journal")))
		require.NoError(t, os.WriteFile(filepath.Join(bucket, "journal"), nil, 0o600))
	}
	code, res := b.run(contract.Request{Digests: digests("d1")})
	require.NotZero(t, code)
	require.Equal(t, contract.Failed, res.Status)
	require.Equal(t, store.CodeDamaged, res.Fault.Code, "%v", res.Fault)
	require.NotContains(t, res.Fault.Fix, "free space")
}

// TestABucketThatDoesNotAnswer stops a step that changes nothing with a fault of
// class preflight, before it does anything.
func TestABucketThatDoesNotAnswer(t *testing.T) {
	bucket := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(bucket, nil, 0o600))
	t.Setenv(contract.StateURLVariable, "file://"+bucket)
	b := newBench(t)
	code, res := b.run(contract.Request{Digests: digests("d1")})
	require.Equal(t, int(fault.Preflight), code)
	require.Equal(t, store.CodeDamaged, res.Fault.Code)
	require.Zero(t, b.calls)
}
