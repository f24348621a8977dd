package state_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault/faulttest"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// FuzzPlan: what is stored as a plan is the plan of its digest, or rejected; and a plan reads back
// as it was written.
func FuzzPlan(f *testing.F) {
	for _, p := range []contract.Plan{
		{}, {Version: 2, Deployment: "demo", Workflow: "install", Release: contract.PlannedRelease{Name: "shop", To: "1.0.0"}, Unchanged: 3, Changes: []contract.PlannedChange{{Of: contract.PlanObjects, Action: "add", Name: "Secret a", Fields: []contract.Difference{{Path: "x", New: "\"\x1b[31m\""}}}}},
		{Workflow: "upgrade", Later: []string{"2"}, Basis: contract.PlanBasis{Objects: map[string]string{"A b/c": "sha256:1"}}, Refused: []contract.PlannedUnknown{{What: "a/b", Code: "X-1", Exit: 99}}},
	} {
		require.NoError(f, p.Seal())
		text, err := json.Marshal(p)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{"null", "[]", "{", `{"digest":7}`, `{"changes":null,"unchanged":1e3}`, `{"made":"0000-01-01T00:00:00Z"}`, "{\"workflow\":\"\xff\"}", `{"Digest":"a","digest":"b"}`} {
		f.Add([]byte(text))
	}
	s, err := store.Open(f.Context(), "mem://", store.Options{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		faulttest.Bounded(t, func() {
			const other = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
			require.NoError(t, s.Put(t.Context(), "plans/a."+strings.TrimPrefix(other, "sha256:")+".json", text))
			_, err := state.Plan(t.Context(), s, other)
			require.ErrorIs(t, err, state.ErrOtherPlan)

			var p contract.Plan
			if json.Unmarshal(text, &p) != nil || p.Seal() != nil {
				return
			}
			require.NoError(t, state.PutPlan(t.Context(), s, "b", &p))
			got, err := state.Plan(t.Context(), s, p.Digest)
			require.NoError(t, err)
			require.Equal(t, p.Digest, got.Digest)
			require.NoError(t, got.Text(io.Discard))
			require.NoError(t, s.Delete(t.Context(), "plans/b."+strings.TrimPrefix(p.Digest, "sha256:")+".json"))
		})
	})
}
