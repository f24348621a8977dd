package workflow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestARefusalIsThePlansError: with the code and the exit code of the run.
func TestARefusalIsThePlansError(t *testing.T) {
	require.NoError(t, refusal(&contract.Plan{}))
	err := refusal(&contract.Plan{Refused: []contract.PlannedUnknown{{What: "infrastructure/ownership", Why: "somebody else's", Code: "INF-034", Exit: 3}}})
	require.ErrorIs(t, err, &fault.Fault{Code: "INF-034"})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "run infrastructure/ownership: somebody else's")
}

// TestNobodyIsAskedWithoutATerminal: CI goes on.
func TestNobodyIsAskedWithoutATerminal(t *testing.T) {
	require.False(t, console.Streams{In: strings.NewReader("")}.Interactive())
	goes, err := (&approval{}).ask(t.Context(), console.Streams{In: strings.NewReader("")}, nil, stages.Destroy())
	require.NoError(t, err)
	require.True(t, goes)
}

func TestOnlyYesMeansYes(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "": false, "no\n": false, "yesterday\n": false} {
		before := time.Now()
		said, err := consent(t.Context(), console.Streams{In: strings.NewReader(answer), Err: progress.Open(io.Discard, progress.Options{})}, "ask", "? ")
		require.NoError(t, err)
		require.Equal(t, want, said != nil, "%q", answer)
		if want {
			require.Equal(t, report.OnTerminal, said.How)
			require.False(t, said.Asked.Before(before) || said.Answered.Before(said.Asked))
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("interrupted")
	cancel(gone)
	_, err := consent(ctx, console.Streams{In: waiting{}, Err: progress.Open(io.Discard, progress.Options{})}, "ask", "? ")
	require.ErrorIs(t, err, gone)
}

// waiting is somebody who does not answer.
type waiting struct{}

func (waiting) Read([]byte) (int, error) { select {} }

// TestAPlanBeforeAQuestion has no fields, and says what is destructive.
func TestAPlanBeforeAQuestion(t *testing.T) {
	plan := &contract.Plan{Workflow: "upgrade", Deployment: "blue", Digest: "sha256:1", Release: contract.PlannedRelease{Name: "shop", From: "1.0.0", To: "1.1.0"},
		Changes: []contract.PlannedChange{{Of: contract.PlanObjects, Action: contract.PlanRemove, Name: "PersistentVolumeClaim shop/data", Destroys: "removes PersistentVolumeClaim shop/data, with its data"}}}
	for range 3 {
		plan.Changes = append(plan.Changes, contract.PlannedChange{Of: contract.PlanObjects, Action: contract.PlanChange, Name: "Deployment shop/web",
			Fields: []contract.Difference{{Path: "spec.replicas", Old: "1", New: "2"}}})
	}
	var b bytes.Buffer
	require.NoError(t, briefly(console.Streams{Out: &b}, plan))
	text := b.String()
	require.Contains(t, text, "Release: shop 1.0.0 → 1.1.0")
	require.NotContains(t, text, "spec.replicas")
	require.Contains(t, text, "! removes PersistentVolumeClaim shop/data, with its data")
	require.Contains(t, text, "3 to change")
	require.Len(t, plan.Changes[1].Fields, 1, "the plan itself is whole")
}
