package console

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	telemetry "github.com/dagger/otel-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// flushLimit is how long the end of the process waits for a collector.
const flushLimit = 5 * time.Second

// startSpan begins the span of a command if OTEL_EXPORTER_OTLP_* name a collector, as below `dagger run`; the spans
// of steps are its children. The returned function ends it.
func startSpan(ctx context.Context, name string, screen io.Writer) (context.Context, func(error)) {
	exporter, ok := telemetry.ConfiguredSpanExporter(ctx)
	if !ok {
		return ctx, func(error) {}
	}
	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() { fmt.Fprintf(screen, "slipway: the collector of spans: %v\n", err) })
	}))
	// Dagger's display takes a span at its beginning, other collectors at its end.
	if telemetry.LiveTracesEnabled {
		return spans(ctx, name, telemetry.NewLiveSpanProcessor(exporter))
	}
	return spans(ctx, name, sdktrace.NewBatchSpanProcessor(exporter))
}

// spans begins the span of a command, below the span that the environment names.
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
