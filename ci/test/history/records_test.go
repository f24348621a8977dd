package history_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// The runs of made, in the order in which they had the lock.
const removal, first, second = "20260102-030405-aaaaaa", "20260102-030406-bbbbbb", "20260102-030407-cccccc"

// state is the directory of a deployment's state, as runs leave it. Times are in seconds.
type state struct {
	dir string
	t   *testing.T
}

func at(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0).UTC() }

func (s state) write(key string, modified int, kind string, version int, record any) {
	s.t.Helper()
	data, err := seal.Seal(kind, version, record)
	require.NoError(s.t, err)
	file := filepath.Join(s.dir, filepath.FromSlash(key))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(s.t, os.WriteFile(file, data, 0o600))
	require.NoError(s.t, os.Chtimes(file, at(modified), at(modified)))
}

// lock is taken at a moment; released is 0 if it expires.
func (s state) lock(generation int64, run, workflow string, acquired, released int) {
	r := lock.Record{Generation: generation, State: lock.Held, Token: run, Acquired: at(acquired), Beat: at(acquired), Holder: lock.Holder{User: "u", Host: "h", Run: run, Workflow: workflow}}
	if released > 0 {
		r.State, r.Released = lock.Released, at(released)
	}
	s.write(fmt.Sprintf("lock/%012d.json", generation), max(acquired, released), "lock", 1, r)
}

// attempt is an attempt at infrastructure/<step>, in the directory of its run; with generation
// also the last one in the journal.
func (s state) attempt(run, step string, status journal.Status, started, finished int, generation int64) {
	a := journal.Attempt{Deployment: "demo", Run: run, Stage: "infrastructure", Step: step, Number: 1, Status: status, Started: at(started)}
	if status == journal.Failed {
		a.Fault = &fault.Fault{Code: "STP-001", Err: errors.New("it failed")}
	}
	if finished > 0 {
		a.Finished = at(finished)
	}
	if status != journal.Running {
		s.write(fmt.Sprintf("runs/%s/steps/infrastructure.%s/attempt-1.json", run, step), finished, "journal", 2, a)
	}
	if generation >= 0 {
		s.write(fmt.Sprintf("journal/infrastructure.%s/%012d.json", step, generation), max(started, finished), "journal", 2, a)
	}
}

// made is the state after a removal, a run that was killed in a step, and one that took its
// lock over at 70 s.
func made(t *testing.T) state {
	s := state{t.TempDir(), t}
	s.lock(1, removal, "destroy", 1, 5)
	s.attempt(removal, "cluster", journal.Succeeded, 2, 3, -1)
	s.lock(2, first, "install", 10, 0)
	s.attempt(first, "preflight", journal.Succeeded, 9, 11, -1)
	s.attempt(first, "cluster", journal.Succeeded, 12, 14, 2)
	s.attempt(first, "storage", journal.Interrupted, 15, 0, -1)
	s.lock(3, second, "install", 70, 90)
	s.attempt(second, "preflight", journal.Succeeded, 16, 17, 0)
	s.attempt(second, "cluster", journal.Reused, 71, 72, -1)
	s.attempt(second, "storage", journal.Succeeded, 73, 75, 3)
	s.write("latest/000000000003", 88, "text", 1, second)
	return s
}

// said is what both runs have printed; the first one has not said which it was.
func said() []history.Said {
	return []history.Said{{Steps: []string{"infrastructure/cluster"}}, {Run: second, Steps: []string{"infrastructure/storage"}}}
}

func TestRecords(t *testing.T) {
	s := made(t)
	events, err := history.Records(t.Context(), s.dir, "demo", said()...)
	require.NoError(t, err)
	require.Empty(t, history.Check(events))
	count := func(op history.Op) int {
		return len(slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return e.Op != op }))
	}
	require.Equal(t, map[history.Op]int{history.Take: 2, history.Release: 1, history.Begin: 3, history.End: 2, history.Found: 2, history.Last: 2, history.Put: 3},
		map[history.Op]int{history.Take: count(history.Take), history.Release: count(history.Release), history.Begin: count(history.Begin), history.End: count(history.End),
			history.Found: count(history.Found), history.Last: count(history.Last), history.Put: count(history.Put)})

	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "lock/000000000003.json"), []byte("{"), 0o600))
	_, err = history.Records(t.Context(), s.dir, "demo")
	require.ErrorContains(t, err, "lock/000000000003.json: it is torn")
}

// TestRecords_find: what must not be in a deployment's state is found there.
func TestRecords_find(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s state)
		kind   history.Kind
		says   string
	}{
		"an attempt of the first run once the second has the lock": {func(s state) { s.attempt(first, "addons", journal.Running, 71, 0, 2) },
			history.Overlap, "generation 2 is let work 1s after 3 was taken"},
		"an attempt of a run that never had the lock": {func(s state) { s.attempt("20260102-030406-dddddd", "addons", journal.Succeeded, 20, 21, -1) },
			history.Overlap, "generation 0 is let work 10s after 2 was taken"},
		"one that goes on": {func(s state) { s.attempt(first, "storage", journal.Failed, 15, 80, -1) },
			history.Overlap, "infrastructure/storage of generation 2 went on for 10s after 3 was taken"},
		"an end of the first run in the journal": {func(s state) { s.attempt(first, "addons", journal.Succeeded, 60, 72, 2) },
			history.Unheld, "end of generation 2 began 2s after 3 was there"},
		"a value of the first run": {func(s state) { s.write("state/000000000002.yaml", 100, "text", 1, "") },
			history.Unheld, "put of generation 2 began 30s after 3 was there"},
		"a generation before a lower one": {func(s state) { s.lock(4, "20260102-030408-dddddd", "install", 69, 0) },
			history.Twice, "generation 4 was taken before 3"},
		"a lost record": {func(s state) {
			require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, "runs", second, "steps/infrastructure.storage")))
		},
			history.Missing, "an attempt at infrastructure/storage by " + second},
		"a lost record that was printed only": {func(s state) {
			require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, "runs", first, "steps/infrastructure.cluster")))
			require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, "journal/infrastructure.cluster")))
		}, history.Missing, "an attempt at infrastructure/cluster by " + first},
		"a record that is not the last one": {func(s state) { s.attempt(first, "storage", journal.Succeeded, 15, 16, 3) },
			history.Missing, "the last attempt at infrastructure/storage is not by " + second},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(t)
			c.change(s)
			events, err := history.Records(t.Context(), s.dir, "demo", said()...)
			require.NoError(t, err)
			anomalies := history.Check(events)
			require.NotEmpty(t, anomalies)
			require.Equal(t, c.kind, anomalies[0].Kind)
			require.Contains(t, anomalies[0].String(), c.says)
		})
	}
}

// TestRecords_ofNobody: what a run has said that left no record.
func TestRecords_ofNobody(t *testing.T) {
	s := state{t.TempDir(), t}
	events, err := history.Records(t.Context(), s.dir, "demo", said()...)
	require.NoError(t, err)
	anomalies := history.Check(events)
	require.NotEmpty(t, anomalies)
	require.Contains(t, anomalies[0].String(), "an attempt at infrastructure/cluster by unknown")
}
