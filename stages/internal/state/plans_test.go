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

// TestPlansAreForgotten: the newest ones stay, each digest once.
func TestPlansAreForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	put := func(n int, release string) string {
		p := &contract.Plan{Release: contract.PlannedRelease{Name: release}}
		require.NoError(t, p.Seal())
		require.NoError(t, state.PutPlan(t.Context(), s, fmt.Sprintf("20260101-0000%02d", n), p))
		return p.Digest
	}
	first := put(0, "0")
	var last string
	for n := range 25 {
		last = put(n, strconv.Itoa(n))
	}
	require.Equal(t, last, put(50, "24"))
	kept, err := s.List(t.Context(), "plans/")
	require.NoError(t, err)
	require.Len(t, kept, 20)
	require.Contains(t, kept, "plans/20260101-000050."+strings.TrimPrefix(last, "sha256:")+".json")
	_, err = state.Plan(t.Context(), s, first)
	require.ErrorIs(t, err, state.ErrNoPlan)
	_, err = state.Plan(t.Context(), s, last)
	require.NoError(t, err)
}

// TestAPlanInThePlaceOfAnother: whoever writes the state cannot have another plan applied than that
// whose digest is approved, and cannot hide that one either.
func TestAPlanInThePlaceOfAnother(t *testing.T) {
	s := open(t, t.TempDir())
	plan := func(names ...string) *contract.Plan {
		p := &contract.Plan{Release: contract.PlannedRelease{Name: "shop"}}
		for _, name := range names {
			p.Changes = append(p.Changes, contract.PlannedChange{Of: contract.PlanObjects, Action: contract.PlanRemove, Name: name})
		}
		require.NoError(t, p.Seal())
		require.NoError(t, state.PutPlan(t.Context(), s, "20260101-000000-aaaaaa", p))
		return p
	}
	approved, other := plan("\xff", `\ufffd`), plan("removes Namespace shop, with its data")
	at := "plans/20260101-000000-aaaaaa." + strings.TrimPrefix(approved.Digest, "sha256:") + ".json"
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
	require.NoError(t, s.Put(t.Context(), "plans/x"+path.Base(at), is))
	_, err = state.Plan(t.Context(), s, approved.Digest)
	require.NoError(t, err, "it is still there")
}
