// Package console has the streams of a command and its interruption.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Streams are what a command reads from and writes to.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err *progress.Screen
	// Terminal is where a form is drawn: standard error; nil when that is no file. Text goes to
	// Screen.
	Terminal *os.File
	// Stop is closed when the run shall end after the steps that run now.
	Stop <-chan struct{}
	// Result gets the record of a run.
	Result *Result
}

// Text is where text for people goes, in which there is something that others wrote: a name in
// a release, a bundle or a record. Out is for what programs read.
func (s Streams) Text() io.Writer { return redact.NewPrinter(s.Out) }

// Screen is Text on the terminal of a form; it is for streams that have one.
func (s Streams) Screen() io.Writer { return redact.NewPrinter(s.Terminal) }

// EngineLog shows the engine's log when it is wanted, else only the lines in
// which a step says what goes on: one that this process started, which is origin, or
// where no origin is told. See contract.ParseLine.
func EngineLog(screen *progress.Screen, verbose bool, origin string) io.Writer {
	if verbose {
		return screen
	}
	return &Lines{Do: func(line string) {
		if from, said, ok := contract.ParseLine(line); ok && (from == "" || from == origin) {
			screen.Message(said)
		}
	}}
}

// Lines is a writer that calls Do with each line, without its end.
type Lines struct {
	Do   func(line string)
	rest []byte
}

// Write calls Do with the lines that have ended.
func (l *Lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := strings.Cut(string(l.rest), "\n")
		if !ok {
			return len(b), nil
		}
		l.rest = []byte(rest)
		l.Do(strings.TrimSuffix(line, "\r"))
	}
}

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
