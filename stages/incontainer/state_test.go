package incontainer

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestState_ofAClusterThatIsThere: it is known without its credentials.
func TestState_ofAClusterThatIsThere(t *testing.T) {
	root := t.TempDir()
	s := volume(t, root)
	on := &State{backend: state.Backend{Volume: root}, store: s, errw: io.Discard}
	known := func() bool {
		stored, err := on.stored(t.Context())
		require.NoError(t, err)
		return stored.Cluster
	}
	require.False(t, known())
	require.NoError(t, state.PutCluster(t.Context(), s, 1, state.Cluster{UID: "u", Server: "https://theirs"}))
	require.True(t, known())
	lost := &fault.Fault{Code: lock.CodeLost}
	require.ErrorIs(t, on.purge(t.Context(), contract.HeldInput{Who: lock.Holder{Run: "r1"}}), lost, "it has the lock no more")
	require.True(t, known())
	_, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: "r1"})
	require.NoError(t, err)
	require.ErrorIs(t, on.purge(t.Context(), contract.HeldInput{Who: lock.Holder{Run: "r0"}}), lost)
	require.True(t, known())
	require.NoError(t, on.purge(t.Context(), contract.HeldInput{Who: lock.Holder{Run: "r1"}}))
	require.NoError(t, lease.Release(t.Context()))
	require.False(t, known())
}

// TestState_ofARunWithoutAnEnd: status, report and runs say that it runs while it
// holds the lock, and that it was interrupted when it does not.
func TestState_ofARunWithoutAnEnd(t *testing.T) {
	root := t.TempDir()
	r := &report.Run{ID: "20260102-030405-a1b2c3", Workflow: "install", Deployment: "blue", Started: time.Now(), Outcome: report.Running}
	r.Plan([]pipeline.Node{{Key: pipeline.Key{Stage: "a", Name: "done"}}, {Key: pipeline.Key{Stage: "a", Name: "working"}}, {Key: pipeline.Key{Stage: "a", Name: "waiting"}}})
	record, err := r.Encode()
	require.NoError(t, err)
	s := volume(t, root)
	on := &State{backend: state.Backend{Volume: root}, store: s, errw: io.Discard}
	require.NoError(t, state.Keep(t.Context(), s, r.ID, map[string][]byte{
		report.RecordFile:                       record,
		"steps/a.done/result.json":              []byte(`{"status":"succeeded","started":"2026-01-02T03:04:06Z","finished":"2026-01-02T03:04:08Z"}`),
		"steps/a.working/log.txt":               []byte("working\n"),
		"steps/a.working/" + contract.WaitsFile: []byte(`[{"step": "a/working", "for": "the gate", "seen": "it is shut"}]`),
	}))
	require.NoError(t, state.PutLatest(t.Context(), s, 1, r.ID))

	says := func(outcome, working string) {
		t.Helper()
		stored, err := on.stored(t.Context())
		require.NoError(t, err)
		var text bytes.Buffer
		status := contract.DeploymentStatus{Outcome: stored.Record.Outcome, Steps: stored.Record.Steps}
		require.NoError(t, status.Text(&text))
		require.Contains(t, text.String(), ": "+outcome+", run")
		if outcome == "running" {
			require.Equal(t, []contract.Wait{{Step: "a/working", For: "the gate", Seen: "it is shut"}}, stored.Waits)
		} else {
			require.Empty(t, stored.Waits)
		}
		require.Regexp(t, "a/done +succeeded", text.String())
		require.Regexp(t, "a/working +"+working, text.String())
		require.Regexp(t, "a/waiting +pending", text.String())

		out := filepath.Join(t.TempDir(), "report")
		run, err := on.report(t.Context(), out, "")
		require.NoError(t, err)
		require.Equal(t, r.ID, run)
		summary, err := os.ReadFile(filepath.Join(out, report.SummaryFile))
		require.NoError(t, err)
		require.Contains(t, string(summary), ": "+outcome+", run "+r.ID)

		list, err := on.runs(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.EqualValues(t, outcome, list[0].Outcome)

		detail, err := on.run(t.Context(), r.ID)
		require.NoError(t, err)
		require.EqualValues(t, outcome, detail.Record.Outcome)
	}
	says("interrupted", "interrupted")

	l := lock.New(s, lock.Options{})
	_, lease, err := l.Acquire(t.Context(), lock.Holder{Run: r.ID})
	require.NoError(t, err)
	says("running", "running")
	require.NoError(t, lease.Release(t.Context()))
	says("interrupted", "interrupted")

	_, lease, err = l.Acquire(t.Context(), lock.Holder{Run: "20260102-040506-d4e5f6"})
	require.NoError(t, err)
	says("interrupted", "interrupted") // another run holds it
	require.NoError(t, lease.Release(t.Context()))
}

// TestRunsWithARecordThatCannotBeUsed: the others are listed all the same.
func TestRunsWithARecordThatCannotBeUsed(t *testing.T) {
	s := volume(t, t.TempDir())
	on := &State{backend: state.Backend{Volume: t.TempDir()}, store: s, errw: io.Discard}
	ids := []string{"20260102-030405-a1b2c3", "20260102-030406-a1b2c3", "20260102-030407-a1b2c3"}
	whole, err := (&report.Run{ID: ids[2], Workflow: "install", Outcome: report.Succeeded}).Encode()
	require.NoError(t, err)
	for i, text := range []string{`{"version":`, `{"version":99}`, string(whole)} {
		require.NoError(t, state.Keep(t.Context(), s, ids[i], map[string][]byte{report.RecordFile: []byte(text)}))
	}
	runs, err := on.runs(t.Context())
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.Contains(t, runs[0].Problem, "decode run record: ")
	require.Contains(t, runs[1].Problem, "it has version 99")
	require.Empty(t, runs[2].Problem)
	require.Equal(t, report.Succeeded, runs[2].Outcome)
	one, err := on.run(t.Context(), ids[0])
	require.NoError(t, err)
	require.Contains(t, one.Problem, "decode run record: ")
}

// TestState_afterTests: how a deployment is, the last run says that was not one of tests.
func TestState_afterTests(t *testing.T) {
	root := t.TempDir()
	s := volume(t, root)
	on := &State{backend: state.Backend{Volume: root}, store: s, errw: io.Discard}
	generation := int64(0)
	last := func(id, workflow string) *report.Run {
		r := &report.Run{ID: id, Workflow: workflow, Deployment: "blue", Started: time.Now()}
		r.Finish(nil, nil, time.Now())
		record, err := r.Encode()
		require.NoError(t, err)
		require.NoError(t, state.Keep(t.Context(), s, r.ID, map[string][]byte{report.RecordFile: record}))
		generation++
		require.NoError(t, state.PutLatest(t.Context(), s, generation, r.ID))
		stored, err := on.stored(t.Context())
		require.NoError(t, err)
		return stored.Record
	}
	require.Nil(t, last("20260101-030405-a1b2c3", "test"))
	require.Equal(t, "20260102-030405-a1b2c3", last("20260102-030405-a1b2c3", "install").ID)
	require.Equal(t, "20260103-030405-a1b2c3", last("20260103-030405-a1b2c3", "upgrade").ID)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "runs/20260103-040405-a1b2c3/steps"), 0o700))
	for _, id := range []string{"20260104-030405-a1b2c3", "20260105-030405-a1b2c3"} {
		require.Equal(t, "20260103-030405-a1b2c3", last(id, "test").ID)
	}
}

// TestState_afterARefusedRun: how a deployment is, the last run says that was not refused;
// beside it is the one that was.
func TestState_afterARefusedRun(t *testing.T) {
	s := volume(t, t.TempDir())
	on := &State{backend: state.Backend{Volume: t.TempDir()}, store: s, errw: io.Discard}
	unfit := &fault.Fault{Code: "INF-034", Class: fault.Preflight, Op: "check the disk", Err: errors.New("1 GiB is free")}
	generation := int64(0)
	last := func(id, workflow, step string, err error) *contract.Stored {
		t.Helper()
		r := &report.Run{ID: id + "-030405-a1b2c3", Workflow: workflow, Deployment: "blue", Started: time.Now()}
		var results []pipeline.Result
		if err != nil {
			results = []pipeline.Result{{Key: pipeline.Key{Stage: "infrastructure", Name: step}, Status: pipeline.Failed, Err: err}}
		}
		r.Finish(results, err, time.Now())
		record, err := r.Encode()
		require.NoError(t, err)
		require.NoError(t, state.Keep(t.Context(), s, r.ID, map[string][]byte{report.RecordFile: record}))
		generation++
		require.NoError(t, state.PutLatest(t.Context(), s, generation, r.ID))
		stored, err := on.stored(t.Context())
		require.NoError(t, err)
		return stored
	}
	stored := last("20260101", "install", "preflight", unfit)
	require.Equal(t, "20260101-030405-a1b2c3", stored.Record.ID, "there is no other")
	require.NotNil(t, stored.Refused)

	stored = last("20260102", "install", "", nil)
	require.Nil(t, stored.Refused)
	stored = last("20260103", "upgrade", "ownership", &fault.Fault{Code: "UPG-001", Class: fault.Usage, Op: "install", Err: errors.New("older")})
	require.Equal(t, "20260102-030405-a1b2c3", stored.Record.ID)
	require.Equal(t, "UPG-001", string(stored.Refused.Code))
	last("20260104", "test", "", nil)
	stored = last("20260105", "install", "preflight", unfit)
	require.Equal(t, "20260102-030405-a1b2c3", stored.Record.ID)
	require.Equal(t, &contract.Refusal{Run: "20260105-030405-a1b2c3", Workflow: "install", Code: "INF-034", Error: "check the disk: 1 GiB is free"}, stored.Refused)
	stored = last("20260106", "test", "", nil)
	require.Equal(t, "20260105-030405-a1b2c3", stored.Refused.Run)

	stored = last("20260107", "install", "terraform", &fault.Fault{Code: "TFM-001", Class: fault.Step, Op: "apply", Err: errors.New("it ended")})
	require.Equal(t, "20260107-030405-a1b2c3", stored.Record.ID, "that one may have changed something")
	require.Nil(t, stored.Refused)
}

// TestState_errorsHoldNoSecret: neither what the conductor is told nor what is printed.
func TestState_errorsHoldNoSecret(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "secrets/kubeconfig"), []byte("users: [{user: {token: c4nary-token-7fk2}}]\n"), 0o600))
	var told bytes.Buffer
	err := WithState(t.Context(), root, nil, &told, func(*State) error {
		return &fault.Fault{Code: "STA-001", Class: fault.Step, Op: "ask", Fix: "again with c4nary-token-7fk2", Err: errors.New("Bearer c4nary-token-7fk2: refused")}
	})
	require.EqualError(t, err, "ask: Bearer ***: refused")
	require.Contains(t, told.String(), `"fix":"again with ***"`)
	require.NotContains(t, told.String(), "c4nary")
}
