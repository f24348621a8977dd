// Package console has the streams of a command and its interruption.
package console

import (
	"io"
	"os"
	"strings"

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
