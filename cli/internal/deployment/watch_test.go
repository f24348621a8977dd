package deployment

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// watchedRun is a run of one step that takes a second, on a screen.
func watchedRun(t *testing.T, live bool) (stderr string) {
	t.Helper()
	var out bytes.Buffer
	screen := progress.Open(&out, progress.Options{Live: live})
	opts := conductor.Options{Config: &config.Config{Global: config.Global{Name: "blue"}}}
	screen.Prepare()
	end := watch(screen, &opts)
	key := pipeline.Key{Stage: "infrastructure", Name: "terraform"}
	opts.Begin([]pipeline.Node{{Key: key}})
	start := time.Now()
	opts.Observe(pipeline.Event{Status: pipeline.Running, Result: pipeline.Result{Key: key, Started: start}})
	finished := start.Add(time.Second)
	opts.Observe(pipeline.Event{Time: finished, Status: pipeline.Succeeded, Result: pipeline.Result{Key: key, Started: start, Finished: finished}})
	screen.End()
	end()
	return out.String()
}

func TestWatchKeepsDurations(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("SLIPWAY_CACHE", cache)
	require.Contains(t, watchedRun(t, true), "infrastructure/terraform: succeeded after 1.0s\n")
	text, err := os.ReadFile(filepath.Join(cache, "durations", "blue.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"steps":[{"stage":"infrastructure","step":"terraform","fresh":1}]}`, string(text))

	// What cannot be read or written is said, and the run goes on.
	file := filepath.Join(cache, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("SLIPWAY_CACHE", file)
	out := watchedRun(t, true)
	require.Contains(t, out, "slipway: no estimate of the time that is left: read the durations")
	require.Contains(t, out, "slipway: save the durations of this run")
	require.Contains(t, out, "succeeded after 1.0s")
}

func TestWatchInPlainLinesNeedsNoCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "none")
	t.Setenv("SLIPWAY_CACHE", cache)
	require.Equal(t, "infrastructure/terraform: running\ninfrastructure/terraform: succeeded after 1.0s\n", watchedRun(t, false))
	require.NoDirExists(t, cache)
}

func TestWatchShowsFewOfTheLinesOfVerify(t *testing.T) {
	var out bytes.Buffer
	screen := progress.Open(&out, progress.Options{})
	watch(screen, &conductor.Options{})
	for range 3 {
		screen.Message("infrastructure/verify: looking")
	}
	require.Equal(t, "     infrastructure/verify: looking\n", out.String())
}
