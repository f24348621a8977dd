package state_test

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestPlansOfADeploymentThatIsGone: whoever planned for it and slept meanwhile takes nothing of
// the next one of its name, and what they keep does not count as its own.
func TestPlansOfADeploymentThatIsGone(t *testing.T) {
	s := open(t, t.TempDir())
	var digest string // of the last one
	put := func(of *contract.Identity, n int, release string) {
		p := &contract.Plan{Release: contract.PlannedRelease{Name: release}}
		require.NoError(t, p.Seal())
		digest = p.Digest
		require.NoError(t, state.PutPlan(t.Context(), s, of, fmt.Sprintf("20260101-0000%02d", n), p))
	}
	now, gone := &contract.Identity{ID: "now"}, &contract.Identity{ID: "gone"}
	for n := range 25 {
		put(now, n, strconv.Itoa(n))
	}
	put(now, 26, "same")
	before, err := s.List(t.Context(), "plans/now/")
	require.NoError(t, err)
	require.Less(t, len(before), 25, "another one would take the place of the oldest")
	for _, of := range []*contract.Identity{gone, nil} {
		put(of, 50, "same")
		put(of, 51, "another")
	}
	after, err := s.List(t.Context(), "plans/now/")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = state.Plan(t.Context(), s, digest)
	require.NoError(t, err)
}

// TestAPlanInThePlaceOfAnother: whoever writes the state cannot have another plan applied than that
// whose digest is approved, and cannot hide that one either.
func TestAPlanInThePlaceOfAnother(t *testing.T) {
	s := open(t, t.TempDir())
	plan := func(names ...string) *contract.Plan {
		p := &contract.Plan{Release: contract.PlannedRelease{Name: "shop"}, Destructive: names}
		require.NoError(t, p.Seal())
		require.NoError(t, state.PutPlan(t.Context(), s, nil, "20260101-000000-aaaaaa", p))
		return p
	}
	approved, other := plan("\xff", `\ufffd`), plan("removes Namespace shop, with its data")
	at := "plans/none/20260101-000000-aaaaaa." + strings.TrimPrefix(approved.Digest, "sha256:") + ".json"
	is, err := s.Get(t.Context(), at)
	require.NoError(t, err)
	got, err := state.Plan(t.Context(), s, approved.Digest)
	require.NoError(t, err)
	require.Equal(t, approved.Digest, got.Digest)

	forged := *other
	forged.Digest = approved.Digest
	for name, planted := range map[string]any{"another": other, "another that claims its digest": forged, "wrong type": []int{1}, "null": nil} {
		text, err := json.Marshal(planted)
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), at, text))
		_, err = state.Plan(t.Context(), s, approved.Digest)
		require.ErrorIs(t, err, state.ErrOtherPlan, name)
		require.ErrorContains(t, err, at)
	}
	require.NoError(t, s.Put(t.Context(), "plans/x/"+path.Base(at), is))
	_, err = state.Plan(t.Context(), s, approved.Digest)
	require.NoError(t, err, "it is still there")
}
