package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"dagger.io/dagger/telemetry"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// watched prepares the screen for a command that runs steps. What the engine
// reports with --verbose leaves no room for a live display.
func (t *target) watched(io streams) streams {
	if t.verbose {
		io.err.Plain()
	}
	io.err.Prepare()
	return io
}

// watch shows a run's steps on screen. What it returns is called when the run
// has ended: it keeps how long the steps took.
//
// The durations are a file in the user's cache, one for each deployment: it is
// there before the first step, while the record of the last run, on the state
// volume, is a container's start away. Only a live display shows an estimate, and
// only where there is one is there a user with a cache.
func (t *target) watch(screen *progress.Screen, opts *conductor.Options) (keep func()) {
	opts.Begin = func(graph []pipeline.Node) { screen.Begin(graph, opts.Parallel) }
	opts.Observe = screen.Observe
	if !screen.Live() {
		return func() {}
	}
	dir, err := cache()
	if err != nil {
		fmt.Fprintf(screen, "slipway: no estimate of the time that is left: %v\n", err)
		return func() {}
	}
	history, err := progress.ReadHistory(filepath.Join(dir, "durations", t.cfg.Global.Name+".json"))
	if err != nil {
		fmt.Fprintf(screen, "slipway: no estimate of the time that is left: %v\n", err)
	}
	opts.Begin = func(graph []pipeline.Node) {
		screen.Begin(graph, opts.Parallel)
		screen.Estimate(history.Durations())
	}
	ran := false
	opts.Observe = func(e pipeline.Event) {
		ran = true
		if history.Observe(e) {
			screen.Estimate(history.Durations())
		}
		screen.Observe(e)
	}
	return func() {
		if !ran {
			return
		}
		if err := history.Write(); err != nil {
			fmt.Fprintf(screen, "slipway: %v\n", err)
		}
	}
}

// cache is Slipway's directory in the user's cache, the one that make bundle and
// make engine use.
func cache() (string, error) {
	if dir := os.Getenv("SLIPWAY_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "slipway"), err
}

// flushLimit is how long the end of the process waits for a collector.
const flushLimit = 5 * time.Second

// traced begins the span of a command where OTEL_EXPORTER_OTLP_* name a
// collector, as they do in what `dagger run` starts and in a nested exec of the
// engine; the spans of steps are children of it. Elsewhere it does nothing. The
// span ends with the returned function.
func traced(ctx context.Context, name string, screen *progress.Screen) (context.Context, func(error)) {
	exporter, ok := telemetry.ConfiguredSpanExporter(ctx)
	if !ok {
		return ctx, func(error) {}
	}
	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() { fmt.Fprintf(screen, "slipway: the collector of spans: %v\n", err) })
	}))
	// Dagger's display takes a span when it begins, other collectors when it has
	// ended.
	if telemetry.LiveTracesEnabled {
		return spans(ctx, name, telemetry.NewLiveSpanProcessor(exporter))
	}
	return spans(ctx, name, sdktrace.NewBatchSpanProcessor(exporter))
}

// spans begins the span of a command, a child of the one that the environment
// names.
func spans(ctx context.Context, name string, to sdktrace.SpanProcessor) (context.Context, func(error)) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(to),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "slipway"))))
	parent := telemetry.Propagator.Extract(ctx, telemetry.NewEnvCarrier(true))
	// A row of its own in Dagger's display: below it stand the steps and nothing else.
	own, span := provider.Tracer("github.com/slipway-sh/slipway").Start(parent, name)
	return own, func(err error) {
		if err == nil {
			span.SetStatus(codes.Ok, "")
		} else {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		defer cancel()
		if err := provider.Shutdown(limited); err != nil {
			otel.Handle(err)
		}
	}
}
