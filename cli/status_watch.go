package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// repeatPause is the time between two looks at a deployment.
const repeatPause = 2 * time.Second

// repeat calls look until it is done or fails. The end of ctx is no error: an interrupt is how
// people end a command that repeats.
func repeat(ctx context.Context, look func() (done bool, err error)) error {
	for {
		done, err := look()
		if ctx.Err() != nil {
			return nil
		}
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(repeatPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// repeat shows the status until the command is interrupted. It also shows the error that comes
// with a status: a deployment may be installed, or become healthy, while somebody watches.
func (o *statusOptions) repeat(ctx context.Context, io console.Streams, d *deployment.Deployment) error {
	view := frames{out: io.Out, on: progress.Terminal(io.Out, os.Getenv)}
	return repeat(ctx, func() (bool, error) {
		status, err := d.Status(ctx, o.live)
		if status == nil || ctx.Err() != nil {
			return false, err
		}
		var text bytes.Buffer
		if err := status.Text(redact.NewPrinter(&text)); err != nil {
			return false, err
		}
		if err != nil {
			fmt.Fprintf(&text, "\n%s\n", redact.Printable(err.Error()))
		}
		return false, view.show(text.String())
	})
}

// frames shows texts, each instead of the one before: on a terminal in its place, elsewhere only
// its new lines.
type frames struct {
	out   io.Writer
	on    progress.Options
	shown map[string]bool // lines of the last text
}

func (f *frames) show(text string) error {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if f.on.Live {
		if _, height := f.on.Size(); height > 1 && len(lines) >= height {
			lines = lines[:height-1]
		}
		_, err := io.WriteString(f.out, "\x1b[H\x1b[2J"+strings.Join(lines, "\n")+"\n")
		return err
	}
	shown := map[string]bool{}
	for _, line := range lines {
		key := strings.Join(strings.Fields(line), " ") // a longer word elsewhere moves the columns
		shown[key] = true
		if f.shown[key] {
			continue
		}
		if _, err := fmt.Fprintln(f.out, line); err != nil {
			return err
		}
	}
	f.shown = shown
	return nil
}
