package journal_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// TestLedger_killed kills a process that begins and ends steps without pause: all
// records are whole, and what was ended stays so.
func TestLedger_killed(t *testing.T) {
	const variable = "SLIPWAY_TEST_LEDGER"
	output, err := json.Marshal(strings.Repeat("x", 1<<16))
	require.NoError(t, err)
	if dir := os.Getenv(variable); dir != "" {
		s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
		require.NoError(t, err)
		l := journal.On(s, "prod")
		for n := 1; ; n++ {
			a, err := l.Begin(t.Context(), fmt.Sprint("run-", os.Getpid()), "a", "b", digests)
			if err == nil {
				err = l.End(t.Context(), a, output, nil)
			}
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("ended", n, a.Run)
		}
	}
	dir := t.TempDir()
	s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
	require.NoError(t, err)
	l := journal.On(s, "prod")
	for round := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLedger_killed$")
		cmd.Env = append(os.Environ(), variable+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		ended, run := 0, ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "ended %d %s", &ended, &run); err == nil && ended > round {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait(), "it was killed")
		last, err := l.Last(t.Context(), "a", "b")
		require.NoError(t, err)
		require.Equal(t, run, last.Run)
		if last.Status != pipeline.Running {
			require.Equal(t, pipeline.Succeeded, last.Status)
			require.JSONEq(t, string(output), string(last.Output))
		}
	}
}
