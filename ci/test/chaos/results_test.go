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
	want := []result{of(1, "step", equal, ""), of(2, "disk", omitted, "no loop device"), of(3, "step", equal, ""), of(4, "disk", failed, "two lines\nof it")}
	other := of(1, "api", failed, "of other rounds")
	other.Seed = 8
	for _, r := range []result{want[0], want[1], of(3, "step", failed, "interrupted"), other, want[2], want[3]} {
		require.NoError(t, r.append(file))
	}
	all, err := results(file, 7)
	require.NoError(t, err)
	require.Equal(t, want, all)
	require.Equal(t, "  1 step            at   2.5s a/b: running; 0 steps reused, 9 attempts of 2 runs; 1m1s: equal", all[0].String())
	require.Contains(t, all[1].String(), ": skipped: no loop device")

	var text strings.Builder
	require.NoError(t, summarise(&text, all))
	require.Equal(t, `KIND  EQUAL  FAILED  SKIPPED
step  2      0       0
disk  0      1       1
2 of 3 equal, 1 skipped
`, text.String())

	require.NoError(t, judge(all, 4, []string{"step", "disk"}))
	require.EqualError(t, judge(all, 5, nil), "round 4, of an earlier call: two lines\nof it")
	require.NoError(t, judge(all[:3], 4, nil))
	require.EqualError(t, judge(all[:3], 4, []string{"disk", "step", "api"}), "no round of kind disk was played: no loop device\nno round of kind api was played: there are fewer rounds than kinds")
	require.EqualError(t, judge(all[1:2], 4, nil), "no round was played")

	require.NoError(t, os.WriteFile(file, []byte("{}\n{\n"), 0o600))
	_, err = results(file, 7)
	require.ErrorContains(t, err, "results.jsonl, line 2: ")
}
