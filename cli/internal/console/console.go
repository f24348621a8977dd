// Package console runs a command: its streams, interruption, output formats and result.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Streams are what a command reads from and writes to.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err *progress.Screen
	// Terminal is standard error if that is a file, to draw a form; else nil. Text goes to Screen.
	Terminal *os.File
	// Stop is closed when the run shall end after the steps that run now.
	Stop <-chan struct{}
	// Result gets the record of a run.
	Result *Result
}

// Text is for people, and cleans names that others wrote. Out is for programs.
func (s Streams) Text() io.Writer { return redact.NewPrinter(s.Out) }

// Screen is Text on the terminal of a form; it is for streams that have one.
func (s Streams) Screen() io.Writer { return redact.NewPrinter(s.Terminal) }

// Interactive reports whether the command can ask a question.
func (s Streams) Interactive() bool {
	in, isFile := s.In.(*os.File)
	return isFile && s.Terminal != nil && !usage.InModule() && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(s.Terminal.Fd()))
}

// EngineLog shows the engine's whole log if verbose; else only the messages of steps from origin, or without one.
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

// Interruptible returns a context that the second SIGINT or SIGTERM ends, and a channel that the first one
// closes. The third one ends the process.
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
			signal.Stop(signals) // another one ends the process even if something ignores the context
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

// EnvResult names a file in which a command says how it ended, as JSON, for the program that runs it.
const EnvResult = "SLIPWAY_RESULT"

// Result is how a command ended.
type Result struct {
	Code  fault.Code  `json:"code,omitempty"`  // of its error; empty: it has none, or the command succeeded
	Error string      `json:"error,omitempty"` // empty: the command succeeded
	Run   *report.Run `json:"run,omitempty"`   // record of the last run that it carried out

	file string
}

// NewResult is the result of this command. It hides the variable from processes that the command starts.
func NewResult() *Result {
	e := &Result{file: os.Getenv(EnvResult)}
	_ = os.Unsetenv(EnvResult)
	return e
}

// Write writes the file, if there is one, of a command that ended with err. It returns err.
func (e *Result) Write(err error) error {
	if e.file == "" {
		return err
	}
	if err != nil {
		e.Error = err.Error()
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		e.Code = f.Code
	}
	text, failed := json.Marshal(e)
	if failed == nil {
		failed = atomicfile.Write(e.file, text, 0o600)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	return err
}
