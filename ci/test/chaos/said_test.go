package main

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// printed is what an install prints.
const printed = `     infrastructure/lock: waiting for u@h (install, run 20260101-000000-aaaaaa)
infrastructure/preflight: running
infrastructure/preflight: succeeded after 0.3s
infrastructure/node: running
infrastructure/node: succeeded after 4.2s
infrastructure/terraform: running
     infrastructure/terraform: infrastructure/cluster: succeeded after all
infrastructure/terraform: succeeded after 5.0s
infrastructure/cluster: reused after 1.0s
infrastructure/storage: running
infrastructure/storage: failed after 20s: it was lost
install of chaos: failed in 30s, run 20260102-030405-a1b2c3

STEP                      STATUS     TIME
infrastructure/terraform  succeeded  5.0s

error LOK-002: install: storage: the lock was lost
  remedy: run it again

error RUN-001: another one
`

func TestSaid(t *testing.T) {
	s := &said{reference: facts.Facts{stepFact("infrastructure/terraform"): done, stepFact("infrastructure/storage"): done}}
	require.Equal(t, "before the first step", s.at())
	for _, part := range []string{printed[:100], printed[100:500], printed[500:]} {
		n, err := s.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
		if s.run == "" {
			require.Contains(t, []string{"before the first step", "infrastructure/terraform: running", "infrastructure/terraform: succeeded", "infrastructure/storage: running", "infrastructure/storage: failed"}, s.at())
		}
	}
	require.Equal(t, "LOK-002", s.fault())
	require.Equal(t, history.Said{Run: "20260102-030405-a1b2c3", Steps: []string{"infrastructure/terraform"}},
		s.acknowledged(map[string]bool{"infrastructure/terraform": true, "infrastructure/storage": true}))
}

// ended is an install that has ended with a status and a code.
func ended(t *testing.T, status, code string) *running {
	t.Helper()
	inst := &running{said: &said{code: code}, gone: make(chan struct{})}
	close(inst.gone)
	if status != "0" {
		inst.err = exec.Command("sh", "-c", status).Run()
		require.Error(t, inst.err)
	}
	return inst
}

func TestEnds(t *testing.T) {
	killed, lost, bug, silent, well := ended(t, "kill -KILL $$", ""), ended(t, "exit 6", "LOK-002"), ended(t, "exit 1", "RUN-003"), ended(t, "exit 4", ""), ended(t, "0", "")
	for name, c := range map[string]struct {
		ended func(*running) error
		ok    []*running
		gone  []*running
		wrong []*running
	}{
		"dies":   {dies, []*running{killed, lost}, []*running{well}, nil},
		"fails":  {fails, []*running{lost}, []*running{well}, []*running{killed, bug, silent}},
		"either": {either, []*running{well, lost}, nil, []*running{killed, bug, silent}},
	} {
		for _, inst := range c.ok {
			require.NoError(t, c.ended(inst), name)
		}
		for _, inst := range c.gone {
			require.ErrorIs(t, c.ended(inst), errGone, name)
		}
		for _, inst := range c.wrong {
			require.Error(t, c.ended(inst), name)
			require.NotErrorIs(t, c.ended(inst), errGone, name)
		}
	}
	require.Equal(t, "it ended with 6 LOK-002", lost.outcome())
	require.Equal(t, "it succeeded", well.outcome())

	require.ErrorIs(t, lostLock(nil, noticed, noticed), errGone)
	require.ErrorContains(t, lostLock(nil, noticed+1e9, noticed), "succeeded ")
	require.NoError(t, lostLock(lost.err, noticed, noticed))
	require.ErrorContains(t, lostLock(lost.err, noticed+1e9, noticed), "without the lock")
	require.ErrorContains(t, lostLock(silent.err, 0, noticed), "otherwise")

	unreleased := ended(t, "exit 4", "LOK-005")
	require.NoError(t, stops(unreleased, time.Now(), noticed))
	require.ErrorContains(t, stops(unreleased, time.Now().Add(-2*noticed), noticed), "otherwise")
	require.ErrorIs(t, stops(well, time.Now(), noticed), errGone)
}

func TestOneWorked(t *testing.T) {
	of := func(status int) error {
		if status == 0 {
			return nil
		}
		return &slipway.ExitError{Command: "install", Status: status}
	}
	for _, c := range []struct {
		first, second int
		how           string
	}{{0, 0, "it worked after the first"}, {0, 6, "it did not get the lock"}, {6, 0, "it took over"}, {6, 6, ""}, {4, 0, ""}, {0, 4, ""}, {0, -1, ""}} {
		how, err := oneWorked(&running{said: &said{}, err: of(c.first)}, of(c.second))
		require.Equal(t, c.how, how)
		require.Equal(t, c.how == "", err != nil)
	}
	how, err := oneWorked(&running{said: &said{code: "LOK-005"}, err: of(4)}, nil)
	require.NoError(t, err)
	require.Equal(t, "it worked after the first", how)
	require.Equal(t, -1, status(errors.New("it could not be run")))
}

// TestTheBeginningOfAStep: a round waits for it, and not for one that an install never says.
func TestTheBeginningOfAStep(t *testing.T) {
	for step, want := range map[string]error{"infrastructure/terraform": nil, "infrastructure/cluster": errGone} {
		inst := &running{said: &said{awaited: step, begun: make(chan struct{})}, gone: make(chan struct{})}
		go func() {
			_, _ = inst.said.Write([]byte(printed + printed))
			if want != nil {
				close(inst.gone)
			}
		}()
		require.ErrorIs(t, until(t.Context(), inst, inst.said.begun), want)
	}
}
