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

	for _, entry := range []string{"{}", "null", "0", "[]", `"a"`} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, list := range []string{"steps", "Steps", "apps", "links", "diagnosis", "warnings", "commands", "phases"} {
			_, err = report.Decode(many(list, entry, 1_000_000))
			require.ErrorContains(t, err, "commas; at most 50000 are read")
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30))
	}
	_, err = report.Decode(many("phases", "{}", 201))
	require.ErrorContains(t, err, "it has 201 phases; at most 200 are read")
	_, err = report.Decode([]byte(`{"version": 1, "error": "` + strings.Repeat("a", 8<<20) + `"}`))
	require.ErrorContains(t, err, "at most 8388608 are read")
}
