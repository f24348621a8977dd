package step_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestAStepInThisProcess(t *testing.T) {
	b := newBench(t)
	require.NoError(t, os.Mkdir(b.path("state"), 0o700))
	req := contract.Request{
		Run: "r1", Deployment: "test", Stage: "stage", Step: "measure",
		Input: json.RawMessage(`{"text":"four"}`), Digests: digests("a"), VerifyOnly: true,
	}
	perform := func() contract.Result {
		return step.Perform(t.Context(), &b.reg, req, step.Dirs{State: b.path("state")}, "", &b.shown)
	}
	res := perform()
	require.Equal(t, contract.Failed, res.Status)
	require.Zero(t, b.calls)

	req.VerifyOnly = false
	res = perform()
	require.Nil(t, res.Fault)
	require.Equal(t, contract.Succeeded, res.Status)
	require.False(t, res.Began.IsZero())

	req.Run, req.VerifyOnly = "r2", true
	res = perform()
	require.Equal(t, contract.Reused, res.Status)
	require.JSONEq(t, `{"length":4}`, string(res.Output))
	require.Equal(t, 1, b.calls)
	for _, run := range []string{"r1", "r2"} {
		require.FileExists(t, b.path("state/runs/"+run+"/steps/stage.measure/result.json"))
	}
}

// buckets opens buckets in memory, by their names, and keeps them.
type buckets map[string][]*blob.Bucket

func (b buckets) OpenBucketURL(_ context.Context, u *url.URL) (*blob.Bucket, error) {
	opened := memblob.OpenBucket(nil)
	b[u.Host] = append(b[u.Host], opened)
	return opened, nil
}

func (buckets) Credentials() []string { return nil }

func (buckets) Kind(err error) store.Kind {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return store.Absent
	}
	return store.Other
}

// TestAStepClosesItsStore: in one process many steps run.
func TestAStepClosesItsStore(t *testing.T) {
	b, opened := newBench(t), buckets{}
	b.reg.Stores = map[string]store.Opener{"mine": opened}
	t.Setenv(contract.StateURLVariable, "mine://bucket")
	_, res := b.run(contract.Request{Digests: digests("d")})
	require.Nil(t, res.Fault, b.shown.String())
	require.Len(t, opened["bucket"], 1, "one for all that a step does")
	_, err := opened["bucket"][0].Exists(t.Context(), "x")
	require.ErrorContains(t, err, "closed")
}
