package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// history is what the lock's records and the journal tell of the runs since a deployment's last
// removal. Times are those of this machine's clock.
type history struct {
	locks    []lock.Record     // by generation
	attempts []journal.Attempt // at steps that need the lock and were not reused
	last     map[string]journal.Attempt
}

// acknowledged is what an install has said of itself.
type acknowledged struct {
	run   string   // its id; empty if it ended before it said that
	steps []string // "stage/step" of each that had succeeded
}

// packRecords prints the records of a deployment's state volume, as packVolume does the whole.
const packRecords = "cd /slipway/state; find lock journal runs -path 'lock/*.json' -o -path 'journal/*.json' -o -name result.json | tar -cz --files-from - | base64 -w0"

// history reads the deployment's.
func (c *chaos) history(t *testing.T) history {
	t.Helper()
	if c.proxy != nil {
		return readHistory(t, filepath.Join(c.server.Objects(), "team", c.Name), c.Name)
	}
	dir := t.TempDir()
	for name, text := range volume(t, c.shell(t, packRecords)) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return readHistory(t, dir, c.Name)
}

// readHistory reads that in the directory of a deployment's state.
func readHistory(t *testing.T, dir, deployment string) history {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+filepath.ToSlash(dir), store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	h, removed := history{last: map[string]journal.Attempt{}}, lock.Record{}
	keys, err := s.List(t.Context(), "lock/")
	require.NoError(t, err)
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if strings.Count(key, "/") > 1 {
			continue // of those that broke another one there is a copy
		}
		data, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		var l lock.Record
		require.NoError(t, store.Unseal(data, "lock", 1, &l), key)
		h.locks = append(h.locks, l)
		if l.Holder.Workflow == config.Destroy {
			h.locks, removed = nil, l
		}
	}
	ledger, since := journal.On(s, deployment), cmp.Or(removed.Released, removed.Beat)
	counts := func(a journal.Attempt) bool {
		return a.Stage+"/"+a.Step != contract.PreflightStep().String() && a.Run != removed.Holder.Run && a.Started.After(since)
	}
	keys, err = s.List(t.Context(), "runs/")
	require.NoError(t, err)
	var runs []string
	for _, key := range keys {
		run, _, _ := strings.Cut(strings.TrimPrefix(key, "runs/"), "/")
		locked := slices.ContainsFunc(h.locks, func(l lock.Record) bool { return l.Holder.Run == run })
		if locked || run > removed.Holder.Run { // ids sort by time
			runs = append(runs, run)
		}
	}
	steps, err := ledger.Steps(t.Context())
	require.NoError(t, err)
	for _, id := range steps {
		stage, step, _ := strings.Cut(id, "/")
		a, err := ledger.Last(t.Context(), stage, step)
		require.NoError(t, err)
		if counts(a) {
			h.last[id] = a
			h.attempts = append(h.attempts, a)
		}
	}
	for _, key := range keys { // runs/<run>/steps/<stage>.<step>/result.json
		parts := strings.Split(key, "/")
		if len(parts) != 5 || parts[4] != "result.json" || !slices.Contains(runs, parts[1]) {
			continue
		}
		data, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		var r contract.Result
		require.NoError(t, json.Unmarshal(data, &r), key)
		stage, step, _ := strings.Cut(parts[3], ".")
		a := journal.Attempt{Run: parts[1], Stage: stage, Step: step, Status: r.Status, Fault: r.Fault, Started: r.Began, Finished: r.Finished}
		// What the journal has of the same attempt is more precise.
		if !r.Began.IsZero() && counts(a) && h.last[stage+"/"+step].Run != a.Run {
			h.attempts = append(h.attempts, a)
		}
	}
	return h
}

// steps are those of the journal.
func (h history) steps() map[string]bool {
	out := map[string]bool{}
	for step := range h.last {
		out[step] = true
	}
	return out
}

// problems are what must not have happened, in a history of installs that have said this.
func (h history) problems(said ...acknowledged) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	generation := map[string]int64{}
	for i, l := range h.locks {
		generation[l.Holder.Run] = l.Generation
		if i > 0 && l.Acquired.Before(h.locks[i-1].Acquired) {
			problem("generation %d was taken before %d", l.Generation, h.locks[i-1].Generation)
		}
	}
	// next is the first lock generation that another run had taken by a moment, after the run's own; 0: none.
	next := func(run string, at time.Time) int64 {
		for _, l := range h.locks {
			if l.Generation > generation[run] && l.Acquired.Before(at) {
				return l.Generation
			}
		}
		return 0
	}
	for _, l := range h.locks {
		if n := next(l.Holder.Run, l.Released); n > 0 {
			problem("run %s released the lock when generation %d was taken", l.Holder.Run, n)
		}
	}
	type made struct{ run, step string }
	accepted, succeeded := map[made]bool{}, map[made]bool{}
	for step, a := range h.last {
		accepted[made{a.Run, step}] = a.Status == pipeline.Succeeded
	}
	for _, s := range said {
		if s.run == "" { // the first run of which no other install has said that it is its own
			for _, l := range h.locks {
				if !slices.ContainsFunc(said, func(other acknowledged) bool { return other.run == l.Holder.Run }) {
					s.run = l.Holder.Run
					break
				}
			}
		}
		for _, step := range s.steps {
			accepted[made{s.run, step}] = true
		}
	}
	for _, a := range h.attempts {
		this := made{a.Run, a.Stage + "/" + a.Step}
		succeeded[this] = succeeded[this] || a.Status == pipeline.Succeeded
		if n := next(a.Run, a.Started); n > 0 {
			problem("run %s began %s when generation %d was taken", a.Run, this.step, n)
		} else if n := next(a.Run, a.Finished); n > 0 && (a.Status == pipeline.Failed && a.Fault.Code != lock.CodeLost || a.Status == pipeline.Succeeded && accepted[this]) {
			problem("run %s ended %s (%s) when generation %d was taken", a.Run, this.step, a.Status, n)
		}
	}
	for this, is := range accepted {
		switch {
		case !is:
		case !succeeded[this]:
			problem("run %s has no record of %s, which succeeded", this.run, this.step)
		case generation[h.last[this.step].Run] < generation[this.run]:
			problem("the last attempt at %s is not that of run %s, or of a later one", this.step, this.run)
		}
	}
	return problems
}

// TestHistory: what must not be in the records of lock and journal is found there. The first run
// was killed in a step; the second one took its lock over at 70 s.
func TestHistory(t *testing.T) {
	const removal, first, second = "20260102-030405-aaaaaa", "20260102-030406-bbbbbb", "20260102-030407-cccccc"
	at := func(seconds int) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(1_000_000+int64(seconds), 0).UTC()
	}
	var dir string
	put := func(key string, data []byte) {
		file := filepath.Join(dir, filepath.FromSlash(key))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, data, 0o600))
	}
	write := func(key, kind string, version int, record any) {
		data, err := store.Seal(kind, version, record)
		require.NoError(t, err)
		put(key, data)
	}
	locked := func(generation int64, run, workflow string, acquired, released int) {
		write(fmt.Sprintf("lock/%012d.json", generation), "lock", 1, lock.Record{
			Generation: generation, State: lock.Held, Token: run, Acquired: at(acquired), Beat: at(acquired), Released: at(released),
			Holder: lock.Holder{User: "u", Host: "h", Run: run, Workflow: workflow}})
	}
	attempt := func(run, step string, status pipeline.Status, started, finished int, generation int64) {
		var f *fault.Fault
		if status == pipeline.Failed {
			f = &fault.Fault{Code: "STP-001", Err: errors.New("it failed")}
		}
		if finished > 0 {
			r := contract.Result{Status: status, Fault: f, Started: at(started), Finished: at(finished)}
			if status != pipeline.Reused {
				r.Began = r.Started
			}
			data, err := json.Marshal(r)
			require.NoError(t, err)
			put(fmt.Sprintf("runs/%s/steps/infrastructure.%s/result.json", run, step), data)
		}
		if generation > 0 {
			write(fmt.Sprintf("journal/infrastructure.%s/%012d.json", step, generation), "journal", 3, journal.Attempt{
				Deployment: "demo", Run: run, Stage: "infrastructure", Step: step, Status: status, Fault: f, Started: at(started), Finished: at(finished)})
		}
	}
	remove := func(name string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, name))) }
	for name, c := range map[string]struct {
		change func()
		says   []string
	}{
		"nothing": {func() {}, nil},
		"an attempt once the second run has the lock": {func() { attempt(first, "addons", pipeline.Running, 71, 0, 2) },
			[]string{"run " + first + " began infrastructure/addons when generation 3 was taken"}},
		"an attempt that goes on without the lock": {func() { attempt(first, "addons", pipeline.Failed, 15, 80, 0) },
			[]string{"run " + first + " ended infrastructure/addons (failed) when generation 3 was taken"}},
		"an end that was accepted without the lock": {func() { attempt(first, "addons", pipeline.Succeeded, 60, 72, 2) },
			[]string{"run " + first + " ended infrastructure/addons (succeeded) when generation 3 was taken"}},
		"an attempt without any lock": {func() { attempt("20260102-030406-dddddd", "addons", pipeline.Succeeded, 20, 21, 0) },
			[]string{"run 20260102-030406-dddddd began infrastructure/addons when generation 2 was taken"}},
		"a release without the lock": {func() { locked(2, first, "install", 10, 71) },
			[]string{"run " + first + " released the lock when generation 3 was taken"}},
		"a generation before a lower one": {func() { locked(4, "20260102-030408-dddddd", "install", 69, 0) },
			[]string{"generation 4 was taken before 3", "run " + second + " released the lock when generation 4 was taken", "run " + second + " began infrastructure/storage when generation 4 was taken"}},
		"a success without a record": {func() {
			remove("runs/" + first + "/steps/infrastructure.cluster")
			remove("journal/infrastructure.cluster")
		},
			[]string{"run " + first + " has no record of infrastructure/cluster, which succeeded"}},
		"a success that is not the last attempt": {func() {
			remove("journal/infrastructure.storage/000000000003.json")
			attempt(first, "storage", pipeline.Succeeded, 15, 16, 2)
		},
			[]string{"the last attempt at infrastructure/storage is not that of run " + second + ", or of a later one"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir = t.TempDir()
			locked(1, removal, "destroy", 1, 5)
			attempt(removal, "cluster", pipeline.Succeeded, 2, 3, 0)
			locked(2, first, "install", 10, 0)
			attempt(first, "preflight", pipeline.Succeeded, 9, 11, 0)
			attempt(first, "cluster", pipeline.Succeeded, 12, 14, 2)
			attempt(first, "storage", pipeline.Running, 15, 0, 2)
			locked(3, second, "install", 70, 90)
			attempt(second, "cluster", pipeline.Reused, 71, 72, 0)
			attempt(second, "storage", pipeline.Succeeded, 73, 75, 3)
			c.change()
			h := readHistory(t, dir, "demo")
			require.True(t, h.steps()["infrastructure/storage"])
			// The first install was killed before it has said which run it was.
			require.Equal(t, c.says, h.problems(acknowledged{"", []string{"infrastructure/cluster"}}, acknowledged{second, []string{"infrastructure/storage"}}))
		})
	}
}

// TestAcknowledged: what is read of what an install prints.
func TestAcknowledged(t *testing.T) {
	i := &running{}
	require.Equal(t, "before the first step", i.at())
	i.out.add(`     infrastructure/lock: waiting for u@h (install, run 20260101-000000-aaaaaa)
infrastructure/preflight: running
infrastructure/preflight: succeeded after 0.3s
infrastructure/terraform: running
     infrastructure/terraform: infrastructure/cluster: succeeded after all
infrastructure/terraform: succeeded after 5.0s
infrastructure/cluster: reused after 1.0s
infrastructure/storage: failed after 20s: it was lost
install of chaos: failed in 30s, run 20260102-030405-a1b2c3

error LOK-002: install: storage: the lock was lost
  remedy: run it again

error RUN-001: another one
`)
	require.Equal(t, "infrastructure/storage: failed", i.at())
	require.Equal(t, "LOK-002", i.code())
	c := &chaos{journaled: map[string]bool{"infrastructure/terraform": true, "infrastructure/storage": true}}
	require.Equal(t, acknowledged{"20260102-030405-a1b2c3", []string{"infrastructure/terraform"}}, c.acknowledged(i.out.String()))
}
