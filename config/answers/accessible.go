package answers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/charmbracelet/huh"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// askPage asks the questions of a page in huh's accessible mode, which shows no help of its own.
func askPage(in io.Reader, out io.Writer, p Page, field func(Question) huh.Field) {
	fmt.Fprintf(out, "\n%s. %s\n", redact.OneLine(p.Title), below(p.Help))
	for _, q := range p.Questions {
		fmt.Fprintf(out, "\n%s: %s\n", redact.OneLine(q.Title()), below(describe(q)))
		if example := placeholder(q); example != "" && len(q.Choices) == 0 {
			fmt.Fprintf(out, "  (%s)\n", example)
		}
		_ = field(q).RunAccessible(out, in) // of its errors inLines knows more
	}
}

// inLines lets ask prompt in huh's accessible mode, until the input or ctx ends.
func (f Form) inLines(ctx context.Context, ask func(in io.Reader, out io.Writer)) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(reader{f.In, ctx.Err, &err}, redact.NewPrinter(f.Out))
	}()
	select {
	case <-done:
	case <-ctx.Done():
		fmt.Fprintln(f.Out)
		return context.Cause(ctx)
	}
	if err != nil {
		fmt.Fprintln(f.Out)
	}
	return err
}

// reader reads one byte at a time, because every prompt of huh's has a buffer of its own. Where there
// is nothing more to read it ends its goroutine: huh would take that for an empty line, or ask forever.
type reader struct {
	in      io.Reader
	stopped func() error // why nothing more is read
	err     *error
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p[:1])
	switch {
	case r.stopped() != nil:
	case errors.Is(err, io.EOF):
		*r.err = fmt.Errorf("the answers end here: %w", ErrAborted)
	case err != nil:
		*r.err = fmt.Errorf("read the answer: %w", err)
	default:
		return n, nil
	}
	runtime.Goexit()
	return 0, nil
}

// spoken is the answer in an accessible input, where an empty line keeps it: "-" clears it.
type spoken struct{ text *string }

func (s spoken) Get() string { return *s.text }

func (s spoken) Set(line string) {
	if line == "-" {
		line = ""
	}
	*s.text = line
}

// withDefault is a prompt that shows what an empty line accepts.
func withDefault(title, value string) string { return title + " [" + redact.OneLine(value) + "]:" }
