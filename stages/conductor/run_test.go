package conductor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// conductOne carries out a workflow of one step, whose container leaves result.
func conductOne(t *testing.T, result string, removes bool, change ...func(*engine)) (*report.Run, string, error) {
	t.Helper()
	c, e := conducted(t, map[string]any{
		`"slipway","step","infrastructure/preflight"`: result, `"slipway","state","keep"`: "{}",
	})
	for _, f := range change {
		f(e)
	}
	record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Install, Removes: removes, Wire: func(g *stages.Graph) error {
		s := stages.Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
		g.Action(contract.CheckEarlierSpec().Key, s)
		stages.Collect(g, s, func(out contract.Preflight, f *stages.Findings) {
			f.Record.Commands, f.State.Revision = []string{"nproc"}, "collected"
		})
		return nil
	}})
	return record, e.all(), err
}

func TestARunHasARecordOfWhatItsStepsFound(t *testing.T) {
	record, asked, err := conductOne(t, `{"status":"succeeded","output":{"cpus":4},"known":1}`, false)
	require.NoError(t, err)
	require.Equal(t, report.Succeeded, record.Outcome)
	require.Equal(t, []string{"nproc"}, record.Commands)
	require.Len(t, record.Steps, 2)
	require.Contains(t, asked, `"slipway","state","hold"`, "it has the lock")
	require.Contains(t, asked, "collected", "the runtime state is written")
	require.NotContains(t, asked, "purge")
	require.NotContains(t, asked, `"slipway","verify"`, "there is next to nothing to verify")
}

// A run in which every step is reused has changed nothing.
func TestARunThatHasNothingToDo(t *testing.T) {
	record, _, err := conductOne(t, `{"status":"reused","output":{"cpus":4},"known":1}`, false)
	require.NoError(t, err)
	require.True(t, record.Unchanged)
	record, _, err = conductOne(t, `{"status":"succeeded","output":{"cpus":4},"known":1}`, false)
	require.NoError(t, err)
	require.False(t, record.Unchanged)

	g := sample(t, contract.Inputs{})
	require.False(t, g.Unchanged(nil))
	left := []pipeline.Result{{Key: contract.NodeKey(), Status: pipeline.Succeeded}, {Key: contract.SyncStep().Key, Status: pipeline.Unselected}}
	require.False(t, g.Unchanged(left), "nothing was looked at")
	require.True(t, g.Unchanged(append(left, pipeline.Result{Key: contract.ClusterStep().Key, Status: pipeline.Reused})))
	require.False(t, g.Unchanged(append(left, pipeline.Result{Key: contract.ClusterStep().Key, Status: pipeline.Reused}, pipeline.Result{Key: contract.TerraformStep().Key, Status: pipeline.Skipped})))
}

func TestARunThatFailsKeepsItsRecordAndCollectsNothing(t *testing.T) {
	const failed = `{"status":"failed","fault":{"code":"INF-003","class":3,"op":"look at the machine","message":"too small"}}`
	for _, removes := range []bool{false, true} {
		record, asked, err := conductOne(t, failed, removes)
		require.ErrorIs(t, err, &fault.Fault{Code: "INF-003"})
		require.Equal(t, report.Failed, record.Outcome)
		require.Empty(t, record.Commands)
		require.NotContains(t, asked, "collected")
		require.NotContains(t, asked, "purge", "what failed can be looked at")
		require.Contains(t, asked, "too small")
	}
}

func TestAfterARemovalTheStateGoesAndTheRecordStays(t *testing.T) {
	record, asked, err := conductOne(t, `{"status":"succeeded","output":{}}`, true)
	require.NoError(t, err)
	require.Equal(t, report.Succeeded, record.Outcome)
	purge := strings.Index(asked, `"slipway","state","purge"`)
	require.Positive(t, purge)
	require.Greater(t, strings.LastIndex(asked, `"slipway","state","keep"`), purge)
	require.NotContains(t, asked, "collected", "there is no runtime state any more")
}

func TestARemovalThatLeavesTheStateHasFailed(t *testing.T) {
	record, asked, err := conductOne(t, `{"status":"succeeded","output":{}}`, true, func(e *engine) {
		const purge = `"slipway","state","purge"`
		e.exit, e.fails, e.answers[purge] = 1, purge, "the disk is full"
	})
	require.ErrorContains(t, err, "the disk is full")
	require.Equal(t, report.Failed, record.Outcome)
	require.Contains(t, record.Error, "the disk is full")
	require.Len(t, record.Steps, 2)
	require.Equal(t, pipeline.Succeeded, record.Steps[0].Status, "the steps are as they were")
	require.Contains(t, asked, "the disk is full", "the record that is written says so")
}

// TestARunThatOnlyTries leaves the runtime state as it is, and may conclude otherwise.
func TestARunThatOnlyTries(t *testing.T) {
	c, e := conducted(t, map[string]any{
		`"slipway","step","infrastructure/preflight"`: `{"status":"failed","fault":{"code":"INF-003","class":3,"op":"look at the machine","message":"too small"}}`,
		`"slipway","state","keep"`:                    "{}",
	})
	record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Test, Tries: true, Wire: func(g *stages.Graph) error {
		stages.Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
		return nil
	}, Conclude: func(err error) error {
		require.ErrorIs(t, err, &fault.Fault{Code: "INF-003"})
		return &fault.Fault{Code: "TST-001", Class: fault.Step, Err: err}
	}})
	require.ErrorIs(t, err, &fault.Fault{Code: "TST-001"})
	require.Equal(t, fault.Step, record.Exit)
	require.Equal(t, fault.Code("TST-001"), record.Fault.Code)
	require.NotContains(t, e.all(), `"runtime"`)
}

// TestANodeIsRemovedUnderTheLock: what empties its volume watches the lock.
func TestANodeIsRemovedUnderTheLock(t *testing.T) {
	c, e := conducted(t, map[string]any{`"slipway","state","keep"`: "{}"})
	record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Destroy, Removes: true, Wire: func(g *stages.Graph) error {
		g.Action(contract.NodeRemoveKey())
		return nil
	}})
	require.NoError(t, err)
	for _, command := range []string{
		`\"run\":\"` + record.ID + `\",\"workflow\":\"destroy\"}}","--","/usr/local/bin/slipway-node","wipe"`,
		`"slipway","state","purge","{\"who\":`,
	} {
		require.Contains(t, e.all(), command)
	}
}
