package journal_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/stretchr/testify/require"
)

func entry() journal.Entry {
	return journal.Entry{
		Digest: "sha256:abc", Status: "failed", Output: json.RawMessage(`{"n":1,"s":"<&>"}`),
		Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Finished: time.Date(2026, 1, 2, 3, 5, 5, 6, time.UTC),
		Run: "20260102-030405-a1b2c3", Attempt: 2,
		Fault: &fault.Fault{Code: "TF-001", Class: fault.Step, Op: "apply", Fix: "run it again", Err: errors.New("boom")},
	}
}

func TestJournal_roundTrip(t *testing.T) {
	j := journal.Open(filepath.Join(t.TempDir(), "state", "journal"))
	_, err := j.Read("infrastructure", "terraform")
	require.ErrorIs(t, err, fs.ErrNotExist)
	all, err := j.All()
	require.NoError(t, err)
	require.Empty(t, all)

	want := entry()
	require.NoError(t, j.Write("infrastructure", "terraform", want))
	got, err := j.Read("infrastructure", "terraform")
	require.NoError(t, err)
	require.JSONEq(t, string(want.Output), string(got.Output))
	require.Equal(t, "boom", got.Fault.Err.Error())
	require.Equal(t, fault.Step, got.Fault.Class)
	got.Output, got.Fault = want.Output, want.Fault
	require.Equal(t, want, got)

	want.Status, want.Fault = "succeeded", nil
	require.NoError(t, j.Write("infrastructure", "terraform", want))
	require.NoError(t, j.Write("configure", "config", want))
	all, err = j.All()
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "configure", all[0].Stage)
	require.Equal(t, "terraform", all[1].Step)
	require.Equal(t, "succeeded", all[1].Status)

	require.NoError(t, j.Remove("configure", "config"))
	require.NoError(t, j.Remove("configure", "config"))
	_, err = j.Read("configure", "config")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func recordError(t *testing.T, err error, reason journal.Reason, file string) {
	t.Helper()
	e, ok := errors.AsType[*journal.RecordError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, e.Reason, "%v", err)
	require.Equal(t, file, e.File)
	require.ErrorContains(t, err, file)
}

func TestRead_tornAnywhere(t *testing.T) {
	j := journal.Open(t.TempDir())
	require.NoError(t, j.Write("a", "b", entry()))
	file := j.File("a", "b")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(file, whole[:n], 0o600))
		_, err = j.Read("a", "b")
		recordError(t, err, journal.Torn, file)
	}
}

func TestRead_alteredAnywhere(t *testing.T) {
	j := journal.Open(t.TempDir())
	require.NoError(t, j.Write("a", "b", entry()))
	file := j.File("a", "b")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for i := range whole {
		altered := append([]byte(nil), whole...)
		altered[i] ^= 1
		require.NoError(t, os.WriteFile(file, altered, 0o600))
		_, err = j.Read("a", "b")
		_, ok := errors.AsType[*journal.RecordError](err)
		require.True(t, ok, "byte %d of %s: %v", i, altered, err)
	}
}

func TestRead_foreign(t *testing.T) {
	j := journal.Open(t.TempDir())
	require.NoError(t, j.Write("a", "b", entry()))
	require.NoError(t, os.Rename(j.File("a", "b"), j.File("a", "c")))
	_, err := j.Read("a", "c")
	recordError(t, err, journal.Foreign, j.File("a", "c"))
	require.ErrorContains(t, err, `it is of step "a/b"`)

	require.NoError(t, os.WriteFile(j.File("a", "d"), []byte(`{"version":2,"sha256":"","record":{}}`+"\n"), 0o600))
	_, err = j.Read("a", "d")
	recordError(t, err, journal.Foreign, j.File("a", "d"))

	require.NoError(t, j.Write("a", "e", entry()))
	all, err := j.All()
	require.Len(t, all, 1, "the usable one")
	require.ErrorContains(t, err, j.File("a", "c"))
	require.ErrorContains(t, err, j.File("a", "d"))
}

func TestWrite_names(t *testing.T) {
	j := journal.Open(t.TempDir())
	for _, bad := range []string{"", "a.b", "../a", "A", "a/b", "-a"} {
		require.Panics(t, func() { _ = j.Write(bad, "x", entry()) }, bad)
		require.Panics(t, func() { _, _ = j.Read("x", bad) }, bad)
	}
}

func TestWrite_concurrentSteps(t *testing.T) {
	j := journal.Open(t.TempDir())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 10 {
				if err := j.Write("stage", fmt.Sprint(i), entry()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := j.All()
	require.NoError(t, err)
	require.Len(t, all, 8)
}

func TestWrite_directoryCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, journal.Open(file).Write("a", "b", entry()), "make the journal's directory")
}

// TestWrite_killed kills a process that writes without pause: a reader finds the
// record whole each time, and nothing is left behind by the next writer.
func TestWrite_killed(t *testing.T) {
	const variable = "SLIPWAY_TEST_JOURNAL"
	if dir := os.Getenv(variable); dir != "" {
		e := entry()
		e.Output, _ = json.Marshal(strings.Repeat("x", 1<<16))
		for n := 1; ; n++ {
			e.Attempt = n
			if err := journal.Open(dir).Write("a", "b", e); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("written", n)
		}
	}
	dir := t.TempDir()
	j := journal.Open(dir)
	for round := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWrite_killed$")
		cmd.Env = append(os.Environ(), variable+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		written := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "written %d", &written); err == nil && written > round {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait(), "it was killed")
		got, err := j.Read("a", "b")
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.Attempt, written)
	}
	require.NoError(t, j.Write("a", "b", entry()))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}
