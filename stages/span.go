package stages

import (
	"context"

	telemetry "github.com/dagger/otel-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// tracer is the name under which the steps' spans are emitted, whatever package emits them.
const tracer = "github.com/slipway-sh/slipway/stages/conductor"

// Span begins the span of a step, which is the step's row in Dagger's display; the returned function
// ends it. Without a span in ctx, it does nothing.
func Span(ctx context.Context, key pipeline.Key) (context.Context, func(contract.Status, error)) {
	own, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(tracer).Start(ctx, key.String(),
		telemetry.Reveal(), // in the display of dagger call the step is four calls deep
		trace.WithAttributes(attribute.String("slipway.stage", key.Stage), attribute.String("slipway.step", key.Name)))
	return own, func(status contract.Status, err error) {
		defer span.End()
		switch {
		case err == nil:
			span.SetStatus(codes.Ok, "")
			span.SetAttributes(attribute.Bool(telemetry.CachedAttr, status == contract.Reused))
		case ctx.Err() != nil:
			span.SetAttributes(attribute.Bool(telemetry.CanceledAttr, true))
		default:
			span.SetStatus(codes.Error, err.Error())
		}
	}
}
