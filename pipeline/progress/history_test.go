package progress_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// ended returns the event of a step that took d.
func ended(k pipeline.Key, status pipeline.Status, took time.Duration) pipeline.Event {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return pipeline.Event{Time: start.Add(took), Status: status,
		Result: pipeline.Result{Key: k, Status: status, Started: start, Finished: start.Add(took)}}
}

func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "blue.json")
	h, err := progress.ReadHistory(file)
	require.NoError(t, err)
	require.Empty(t, h.Durations())
	require.False(t, h.Observe(pipeline.Event{Status: pipeline.Running, Result: pipeline.Result{Key: terraform, Started: time.Now()}}))
	require.False(t, h.Observe(ended(terraform, pipeline.Succeeded, 40*time.Second)))
	require.False(t, h.Observe(ended(node, pipeline.Failed, time.Second)), "only success counts")
	require.False(t, h.Observe(pipeline.Event{Status: pipeline.Blocked, Result: pipeline.Result{Key: syncApps}}))
	require.False(t, h.Observe(ended(tls, pipeline.Succeeded, 0)), "a duration of zero is recorded, too")
	require.NoError(t, h.Write())

	h, err = progress.ReadHistory(file)
	require.NoError(t, err)
	want := map[pipeline.Key]time.Duration{terraform: 40 * time.Second, tls: time.Millisecond}
	require.Equal(t, want, h.Durations())
	h.Observe(ended(terraform, pipeline.Succeeded, 20*time.Second))
	want[terraform] = 30 * time.Second
	require.Equal(t, want, h.Durations(), "an outlier counts for half")
	require.NoError(t, h.Write())

	// A run that reuses: the first reused step says so.
	h, err = progress.ReadHistory(file)
	require.NoError(t, err)
	require.True(t, h.Observe(ended(terraform, pipeline.Reused, 2*time.Second)))
	require.False(t, h.Observe(ended(node, pipeline.Succeeded, time.Second)), "one that always runs")
	want = map[pipeline.Key]time.Duration{terraform: 2 * time.Second, node: time.Second, tls: time.Millisecond}
	require.Equal(t, want, h.Durations())
	require.NoError(t, h.Write())

	// The next one may be a fresh one again, until it is known better.
	h, err = progress.ReadHistory(file)
	require.NoError(t, err)
	want[terraform] = 30 * time.Second
	require.Equal(t, want, h.Durations())

	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")
}

func TestHistory_unreadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "blue.json")
	for text, want := range map[string]string{"{": "unexpected end", `{"version":2}`: "it has version 2, this program knows 1"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		h, err := progress.ReadHistory(file)
		require.ErrorContains(t, err, want)
		require.Empty(t, h.Durations())
		h.Observe(ended(node, pipeline.Succeeded, time.Second))
		require.NoError(t, h.Write())
		h, err = progress.ReadHistory(file)
		require.NoError(t, err)
		require.Equal(t, map[pipeline.Key]time.Duration{node: time.Second}, h.Durations())
	}

	h, err := progress.ReadHistory(filepath.Join(file, "not-a-directory.json"))
	require.Error(t, err)
	require.ErrorContains(t, h.Write(), "save the durations of this run")
}
