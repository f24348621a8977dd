package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestResults: rounds that were played over several days are summed up together, and one that was
// played again counts once.
func TestResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	_, err := results(file, 7)
	require.ErrorIs(t, err, os.ErrNotExist)
	of := func(n int, kind string, v verdict, why string) result {
		return result{Round: n, Kind: kind, Seed: 7, Began: time.Unix(int64(n), 0).UTC(), Seconds: 61, Moment: 2.5, During: "a/b: running", Verdict: v, Why: why, Runs: 2, Attempts: 9}
	}
	want := []result{of(1, "step", equal, ""), of(2, "api", equal, ""), of(3, "step", equal, ""), of(4, "api", failed, "two lines\nof it")}
	other := of(1, "api", failed, "of other rounds")
	other.Seed = 8
	for _, r := range []result{want[0], want[1], of(3, "step", failed, "interrupted"), other, want[2], want[3]} {
		require.NoError(t, r.append(file))
	}
	all, err := results(file, 7)
	require.NoError(t, err)
	require.Equal(t, want, all)
	require.Equal(t, "  1 step            at   2.5s a/b: running; 0 steps reused, 9 attempts of 2 runs; 1m1s: equal", all[0].String())

	var text strings.Builder
	require.NoError(t, summarise(&text, all))
	require.Equal(t, `KIND  EQUAL  FAILED
step  2      0
api   1      1
3 of 4 equal
`, text.String())

	require.NoError(t, judge(all, 4, []string{"step", "api"}))
	require.EqualError(t, judge(all, 5, nil), "round 4, of an earlier call: two lines\nof it")
	require.NoError(t, judge(all[:3], 4, nil))
	require.EqualError(t, judge(all[:3], 4, []string{"step", "engine"}), "no round of kind engine was played: there are fewer rounds than kinds")
	require.EqualError(t, judge(nil, 4, nil), "no round was played")

	require.NoError(t, os.WriteFile(file, []byte("{}\n{\n"), 0o600))
	_, err = results(file, 7)
	require.ErrorContains(t, err, "results.jsonl, line 2: ")
}
