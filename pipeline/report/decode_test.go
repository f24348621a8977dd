package report_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/report"
)

// TestARecordTakesNoMoreMemoryThanItMay: others may write records.
func TestARecordTakesNoMoreMemoryThanItMay(t *testing.T) {
	many := func(list, one string, n int) []byte {
		return []byte(`{"version": 1, "id": "r1", "` + list + `": [` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`)
	}
	r, err := report.Decode(many("steps", "{}", 2_000))
	require.NoError(t, err)
	require.Len(t, r.Steps, 2_000)
	_, err = report.Decode(many("commands", `"a"`, 10_000))
	require.NoError(t, err)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = report.Decode(many("steps", "{}", 2_000_000))
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "it has 2000000 steps; at most 2000 are read")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
	for _, list := range []string{"apps", "links", "diagnosis", "warnings"} {
		_, err = report.Decode(many(list, "{}", 10_001))
		require.ErrorContains(t, err, "one of its lists has 10001 entries; at most 10000 are read", list)
	}
	_, err = report.Decode(many("phases", "{}", 201))
	require.ErrorContains(t, err, "it has 201 phases; at most 200 are read")
	_, err = report.Decode(many("commands", `"a"`, 10_001))
	require.ErrorContains(t, err, "10001 entries")
	twice := many("steps", "{}", 2_001)
	_, err = report.Decode(append(twice[:len(twice)-1], `, "steps": []}`...))
	require.ErrorContains(t, err, "2001 steps")
	_, err = report.Decode(many("Steps", "{}", 2_001)) // as the decoder reads names
	require.ErrorContains(t, err, "2001 steps")
	_, err = report.Decode([]byte(`{"version": 1, "error": "` + strings.Repeat("a", 8<<20) + `"}`))
	require.ErrorContains(t, err, "at most 8388608 are read")
}
