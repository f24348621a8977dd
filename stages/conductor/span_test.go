package conductor

import (
	"context"
	"errors"
	"testing"

	telemetry "github.com/dagger/otel-go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestSpanOfAStep(t *testing.T) {
	key := pipeline.Key{Stage: "infrastructure", Name: "terraform"}
	for name, c := range map[string]struct {
		status    contract.Status
		err       error
		cancelled bool
		code      codes.Code
		says      string
		want, not []attribute.KeyValue
	}{
		"succeeded": {status: contract.Succeeded, code: codes.Ok,
			want: []attribute.KeyValue{attribute.Bool(telemetry.UIRevealAttr, true), attribute.String("slipway.stage", "infrastructure"), attribute.String("slipway.step", "terraform")},
			not:  []attribute.KeyValue{attribute.Bool(telemetry.CachedAttr, true)}},
		"reused": {status: contract.Reused, code: codes.Ok, want: []attribute.KeyValue{attribute.Bool(telemetry.CachedAttr, true)}},
		"failed": {status: contract.Failed, err: errors.New("no space"), code: codes.Error, says: "no space"},
		"cancelled": {err: context.Canceled, cancelled: true, code: codes.Unset,
			want: []attribute.KeyValue{attribute.Bool(telemetry.CanceledAttr, true)}},
	} {
		t.Run(name, func(t *testing.T) {
			record := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(record))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx, command := provider.Tracer("test").Start(ctx, "slipway install")
			own, end := stages.Span(ctx, key)
			if c.cancelled {
				cancel()
			}
			end(c.status, c.err)
			require.Len(t, record.Ended(), 1)
			span := record.Ended()[0]
			require.Equal(t, "infrastructure/terraform", span.Name())
			require.Equal(t, command.SpanContext().SpanID(), span.Parent().SpanID())
			require.Equal(t, trace.SpanContextFromContext(own), span.SpanContext(), "what the step asks for belongs to it")
			require.Equal(t, sdktrace.Status{Code: c.code, Description: c.says}, span.Status())
			require.Subset(t, span.Attributes(), c.want)
			for _, not := range c.not {
				require.NotContains(t, span.Attributes(), not)
			}
		})
	}
}

// Without a collector there is no span, and nothing changes.
func TestSpanOfAStep_nobodyListens(t *testing.T) {
	err := spanned(pipeline.Key{Stage: "infrastructure", Name: "node"}, func(ctx context.Context) error {
		require.False(t, trace.SpanContextFromContext(ctx).IsValid())
		return errors.New("as it was")
	})(t.Context())
	require.EqualError(t, err, "as it was")
}
