package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// Interrupted is the fault of op when a signal ended it.
func Interrupted(op, fix string) error {
	return &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: op, Err: errors.New("interrupted"), Fix: fix}
}

// Interruptible returns a context that the second SIGINT or SIGTERM ends and a
// channel that the first one closes, which says what happens then. The third one ends the process.
func Interruptible(ctx context.Context, errw io.Writer, stopping string) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-quit:
			return
		}
		fmt.Fprintf(errw, "slipway: %s; interrupt again to stop at once\n", stopping)
		close(stop)
		select {
		case <-signals:
			signal.Stop(signals) // another one ends the process, whatever does not listen to the context
			cancel(Interrupted("run", "run the same command again: finished steps are kept"))
		case <-quit:
		}
	}()
	return ctx, stop, func() {
		signal.Stop(signals)
		close(quit)
		cancel(nil)
	}
}

// UntilInterrupt is a context that the first interrupt ends, with this cause.
func UntilInterrupt(ctx context.Context, stop <-chan struct{}, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-stop:
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
