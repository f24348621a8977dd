package journal_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/internal/faulty"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// TestLedger_faults installs again and again on a store with faults. What is
// reused was finished with the same input; each run that meets an error ends, and
// some run finishes.
func TestLedger_faults(t *testing.T) {
	const steps, inputs = 6, 3
	for name, plan := range map[string]faulty.Plan{
		"errors":       {Error: 0.05},
		"lost replies": {LostReply: 0.05},
		"torn":         {Torn: 0.05},
		"silent torn":  {SilentTorn: 0.1},
		"duplicates":   {Duplicate: 0.5},
		"slow":         {Slow: 0.5, Delay: 20 * time.Second},
		"all":          {Error: 0.02, LostReply: 0.02, Torn: 0.02, SilentTorn: 0.05, Duplicate: 0.1, Slow: 0.3, Delay: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan.Seed = 7
				bad := faulty.New(memory(t), plan)
				l := journal.On(bad, "prod")
				dice := rand.New(rand.NewPCG(1, 2))
				finished, reused := 0, 0
				for n := range 200 {
					run := fmt.Sprintf("run-%03d", n)
					d := digests
					d.Input = fmt.Sprint(dice.IntN(inputs))
					var mu sync.Mutex
					ok := true
					var wg sync.WaitGroup
					for i := range steps {
						step, want := fmt.Sprint("step-", i), fmt.Sprintf(`"step %d of input %s"`, i, d.Input)
						wg.Go(func() {
							r, err := install(t, l, run, step, d, want)
							mu.Lock()
							defer mu.Unlock()
							ok = ok && err == nil
							if r {
								reused++
							}
						})
					}
					wg.Wait()
					if ok {
						finished++
					}
				}
				require.NotZero(t, finished, "runs that finished")
				require.NotZero(t, reused, "steps that were reused")
				require.NotEmpty(t, bad.Counts(), "faults that occurred")
			})
		})
	}
}

// install does one step as a run does, and fails when what it reuses is not want.
func install(t *testing.T, l *journal.Ledger, run, step string, d journal.Digests, want string) (reused bool, err error) {
	out, why, err := l.Resume(t.Context(), run, "stage", step, d, holds)
	if err == nil && why == "" {
		if string(out) != want {
			t.Errorf("%s reuses %s, want %s", step, out, want)
		}
		return true, nil
	}
	if err == nil {
		var a journal.Attempt
		if a, err = l.Begin(t.Context(), run, "stage", step, d); err == nil {
			time.Sleep(time.Second)
			err = l.End(t.Context(), a, json.RawMessage(want), nil)
		}
	}
	if err != nil && !errors.Is(err, faulty.ErrInjected) {
		t.Error(err)
	}
	return false, err
}

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
			fmt.Println("ended", a.Number, a.Run)
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
		require.GreaterOrEqual(t, last.Number, ended)
		attempts, err := l.Run(t.Context(), run)
		require.NoError(t, err)
		for i, a := range attempts {
			require.Equal(t, i+1, a.Number)
			if i < ended {
				require.Equal(t, journal.Succeeded, a.Status)
			}
		}
	}
}
