package step_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestAStepInThisProcess(t *testing.T) {
	b := newBench(t)
	require.NoError(t, os.Mkdir(b.path("state"), 0o700))
	req := stages.Request{
		Run: "r1", Deployment: "test", Stage: "stage", Step: "measure",
		Input: json.RawMessage(`{"text":"four"}`), Digests: digests("a"), VerifyOnly: true,
	}
	perform := func() stages.Result {
		return step.Perform(t.Context(), &b.reg, req, step.Dirs{State: b.path("state")}, &b.shown)
	}
	res := perform()
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: stages.CodeNotVerified})
	require.Zero(t, b.calls)

	req.VerifyOnly, req.Count = false, true
	res = perform()
	require.Nil(t, res.Fault)
	require.Equal(t, stages.Succeeded, res.Status)
	require.Equal(t, 1, res.Known, "of this step itself")
	require.Equal(t, 1, res.Attempt)

	req.Run, req.VerifyOnly = "r2", true
	res = perform()
	require.Equal(t, stages.Reused, res.Status)
	require.JSONEq(t, `{"length":4}`, string(res.Output))
	require.Equal(t, 1, b.calls)
	for _, run := range []string{"r1", "r2"} {
		require.FileExists(t, b.path("state/runs/"+run+"/steps/stage.measure/result.json"))
	}
	req.Digests.Tools = "others"
	require.Zero(t, perform().Known)
}
