package lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// The tests below write what runs write under the lock, versions of a value and the journal, to stores
// with faults.

// TestPut_faults: what fails is told, and the value is the old or the new one.
func TestPut_faults(t *testing.T) {
	s, v := memory(t), store.Versions{Prefix: "state/", Suffix: ".yaml"}
	require.NoError(t, v.Put(t.Context(), s, 1, []byte("old")))
	bad := faulty(s, faults{Error: 0.4})
	for g := int64(2); g < 200; g++ {
		err := v.Put(t.Context(), bad, g, []byte("new"))
		data, got, readErr := v.Newest(t.Context(), s)
		require.NoError(t, readErr)
		require.NotEmpty(t, data)
		if err == nil {
			require.Equal(t, g, got)
		} else {
			require.True(t, errors.Is(err, errInjected), err)
			require.LessOrEqual(t, got, g)
		}
	}
	require.NotEmpty(t, bad.Counts())
}

// TestLedger_faults installs again and again on a store with faults. What is
// reused was finished with the same input; each run that meets an error ends, and
// some run finishes.
func TestLedger_faults(t *testing.T) {
	const steps, inputs = 6, 3
	for name, plan := range map[string]faults{
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
				bad := faulty(memory(t), plan)
				l := journal.On(bad, "prod")
				dice := rand.New(rand.NewPCG(1, 2))
				finished, reused := 0, 0
				for n := range 200 {
					run := fmt.Sprintf("run-%03d", n)
					d := journal.Digests{Release: "r", Tools: "t"}
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
	out, why, err := l.Resume(t.Context(), "stage", step, d, func(context.Context, json.RawMessage) error { return nil })
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
	if err != nil && !errors.Is(err, errInjected) {
		t.Error(err)
	}
	return false, err
}

// TestLedger_storeErrors: what the store says gets to the caller, and a record is
// never taken for absent because it could not be read.
func TestLedger_storeErrors(t *testing.T) {
	s := memory(t)
	bad := faulty(s, faults{})
	l := journal.On(bad, "prod")
	a, err := l.Begin(t.Context(), "run-1", "infrastructure", "terraform", journal.Digests{Input: "a", Release: "b", Tools: "c"})
	require.NoError(t, err)
	bad.Set(faults{Error: 1})
	require.ErrorIs(t, l.End(t.Context(), a, nil, nil), errInjected)
	_, err = l.Begin(t.Context(), "run-1", "infrastructure", "terraform", journal.Digests{})
	require.ErrorIs(t, err, errInjected)
	_, _, err = l.Resume(t.Context(), "infrastructure", "terraform", journal.Digests{}, nil)
	require.ErrorIs(t, err, errInjected)
	_, err = l.Last(t.Context(), "infrastructure", "terraform")
	require.ErrorIs(t, err, errInjected)
	_, err = l.Steps(t.Context())
	require.ErrorIs(t, err, errInjected)
}
