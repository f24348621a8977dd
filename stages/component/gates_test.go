package component

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gate"
)

// TestAGateInstallsNothing and waits for all of its gates at the same time.
func TestAGateInstallsNothing(t *testing.T) {
	s := newFixture(t, `
  - name: ready
    kind: gate
    ready:
      - {condition: {object: v1/Namespace shop, type: Ready}, deadline: 1s}
      - {job: shop/seed, deadline: 1s}
      - {cel: {object: v1/Namespace shop, expression: "has(object.metadata)"}, deadline: 1s}
`, nil)
	s.api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop}")
	in := contract.ComponentInput{Component: "ready"}
	begun := time.Now()
	_, err := s.install(t.Context(), in)
	require.ErrorIs(t, err, &fault.Fault{Code: gate.CodeShut})
	require.ErrorContains(t, err, "Ready=True of v1/Namespace shop; last seen: it has no condition Ready")
	require.ErrorContains(t, err, "the gate job shop/seed; last seen: ")
	require.NotContains(t, err.Error(), "has(object.metadata)")
	require.Less(t, time.Since(begun), 10*time.Second)
	_, err = s.verify(t.Context(), in)
	require.ErrorContains(t, err, "gate Ready=True of v1/Namespace shop is shut")

	s.api.Set(t, "/api/v1/namespaces/shop", "status: {conditions: [{type: Ready, status: 'True'}]}")
	s.api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/seed", "status: {conditions: [{type: Complete, status: 'True'}]}")
	out, err := s.install(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, []string{"Ready=True of v1/Namespace shop", "job shop/seed", "has(object.metadata) of v1/Namespace shop"}, out.Gates)
	require.Empty(t, s.writes())
}

// TestWhoLooksAtTheClusterSeesWhatIsWaitedFor without having Slipway.
func TestWhoLooksAtTheClusterSeesWhatIsWaitedFor(t *testing.T) {
	s := newFixture(t, "  - {name: ready, kind: gate, ready: [{job: shop/seed, deadline: 2s}]}\n", nil)
	var seen []string
	s.api.Controller = func(path string, o map[string]any) {
		if path == atStatus {
			data := o["data"].(map[string]any)
			seen = append(seen, fmt.Sprint(data["state"], ": ", data["message"]))
		}
	}
	_, err := s.install(t.Context(), contract.ComponentInput{Component: "ready"})
	require.Error(t, err)
	require.Len(t, seen, 2)
	require.Equal(t, "Waiting: component ready: waiting for job shop/seed", seen[0])
	require.Regexp(t, `^Waiting: component ready: waiting for the gate job shop/seed since \d\d:\d\d:\d\dZ, until \d\d:\d\d:\d\dZ: .*not found`, seen[1])
	s.api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/seed", "status: {conditions: [{type: Complete, status: 'True'}]}")
	_, err = s.install(t.Context(), contract.ComponentInput{Component: "ready"})
	require.NoError(t, err)
	require.Equal(t, "InProgress: component ready is ready", seen[len(seen)-1])
}

// TestWhatIsWaitedForIsNoted with what was seen last, for as long as it is.
func TestWhatIsWaitedForIsNoted(t *testing.T) {
	s := newFixture(t, "  - {name: ready, kind: gate, ready: [{job: shop/seed, deadline: 3s}]}\n", nil)
	s.api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/seed", "status: {active: 1}")
	file := filepath.Join(s.env.StateDir, "runs", "r1", "steps", "orchestrator.test", contract.WaitsFile)
	ended := make(chan error, 1)
	begun := time.Now()
	go func() {
		_, err := s.install(t.Context(), contract.ComponentInput{Component: "ready"})
		ended <- err
	}()
	var waits []contract.Wait
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &waits) == nil
	}, 3*time.Second, 10*time.Millisecond)
	require.Len(t, waits, 1)
	require.WithinDuration(t, begun, waits[0].Since, time.Second)
	require.Equal(t, 3*time.Second, waits[0].Until.Sub(waits[0].Since).Round(100*time.Millisecond))
	waits[0].Since, waits[0].Until = time.Time{}, time.Time{}
	require.Equal(t, contract.Wait{Step: "orchestrator/test", For: "the gate job shop/seed", Seen: "1 active, 0 failed"}, waits[0])
	require.Error(t, <-ended)
	require.NoFileExists(t, file)
}
