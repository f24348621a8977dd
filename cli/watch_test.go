package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

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
	var opts conductor.Options
	tgt := &target{cfg: &config.Config{Global: config.Global{Name: "blue"}}}
	keep := tgt.watch(tgt.watched(streams{err: screen}).err, &opts)
	key := pipeline.Key{Stage: "infrastructure", Name: "terraform"}
	opts.Begin([]pipeline.Node{{Key: key}})
	start := time.Now()
	opts.Observe(pipeline.Event{Status: pipeline.Running, Result: pipeline.Result{Key: key, Started: start}})
	end := start.Add(time.Second)
	opts.Observe(pipeline.Event{Time: end, Status: pipeline.Succeeded, Result: pipeline.Result{Key: key, Started: start, Finished: end}})
	screen.End()
	keep()
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
	require.Contains(t, out, "slipway: keep the durations of this run")
	require.Contains(t, out, "succeeded after 1.0s")
}

func TestWatchInPlainLinesNeedsNoCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "none")
	t.Setenv("SLIPWAY_CACHE", cache)
	require.Equal(t, "infrastructure/terraform: running\ninfrastructure/terraform: succeeded after 1.0s\n", watchedRun(t, false))
	require.NoDirExists(t, cache)
}

func TestEngineLogShowsWhatStepsSay(t *testing.T) {
	var out bytes.Buffer
	screen := progress.Open(&out, progress.Options{})
	w := engineLog(screen, false)
	for _, text := range []string{"12: noise\n34: [1.2s] | slipway: infrastru", "cture/terraform: apply\nslipway: no step\n"} {
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.Equal(t, "     infrastructure/terraform: apply\n", out.String())
}

func TestSpanOfACommand(t *testing.T) {
	t.Setenv("TRACEPARENT", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	kept := &collector{}
	ctx, cancel := context.WithCancel(t.Context())
	ctx, finish := spans(ctx, "slipway install", sdktrace.NewBatchSpanProcessor(kept))
	require.True(t, trace.SpanContextFromContext(ctx).IsValid())
	cancel() // an interrupted run is told as well
	finish(errors.New("interrupted"))
	require.Len(t, kept.spans, 1)
	span := kept.spans[0]
	require.Equal(t, "slipway install", span.Name)
	require.Equal(t, "0123456789abcdef", span.Parent.SpanID().String())
	require.Equal(t, codes.Error, span.Status.Code)
	require.Equal(t, "interrupted", span.Status.Description)
}

func TestNoCollectorNoSpan(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	ctx, finish := traced(t.Context(), "slipway install", progress.Open(&bytes.Buffer{}, progress.Options{}))
	require.Equal(t, t.Context(), ctx)
	finish(nil)
}

// collector is a collector.
type collector struct{ spans tracetest.SpanStubs }

func (k *collector) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (k *collector) Shutdown(context.Context) error { return nil }
