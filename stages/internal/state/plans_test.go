package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestPlansOfADeploymentThatIsGone: whoever planned for it and slept meanwhile takes nothing of
// the next one of its name, and what they keep does not count as its own.
func TestPlansOfADeploymentThatIsGone(t *testing.T) {
	s := open(t, t.TempDir())
	put := func(of *contract.Identity, n int, digest string) {
		require.NoError(t, state.PutPlan(t.Context(), s, of, fmt.Sprintf("20260101-0000%02d", n), &contract.Preview{Digest: digest}))
	}
	now, gone := &contract.Identity{ID: "now"}, &contract.Identity{ID: "gone"}
	for n := range 25 {
		put(now, n, fmt.Sprintf("sha256:%d", n))
	}
	put(now, 26, "sha256:same")
	before, err := s.List(t.Context(), "plans/now/")
	require.NoError(t, err)
	require.Less(t, len(before), 25, "another one would take the place of the oldest")
	for _, of := range []*contract.Identity{gone, nil} {
		put(of, 50, "sha256:same")
		put(of, 51, "sha256:another")
	}
	after, err := s.List(t.Context(), "plans/now/")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = state.Plan(t.Context(), s, "sha256:another")
	require.NoError(t, err)
}
