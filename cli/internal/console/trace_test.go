package console

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/slipway-sh/slipway/pipeline/progress"
)

func TestSpanOfACommand(t *testing.T) {
	t.Setenv("TRACEPARENT", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	kept := &collector{}
	ctx, cancel := context.WithCancel(t.Context())
	ctx, finish := spans(ctx, "slipway install", sdktrace.NewBatchSpanProcessor(kept))
	require.True(t, oteltrace.SpanContextFromContext(ctx).IsValid())
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
	ctx, finish := startSpan(t.Context(), "slipway install", progress.Open(&bytes.Buffer{}, progress.Options{}))
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
