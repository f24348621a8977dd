package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// format is how a command prints its result: text or json.
type format string

// addFlag declares the flag.
func (f *format) addFlag(set *pflag.FlagSet) {
	*f = "text"
	set.VarP(f, "output", "o", "format of what is printed: text or json")
}

func (f *format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("give text or json")
	}
	*f = format(text)
	return nil
}

// Type implements pflag.Value.
func (f *format) Type() string { return "string" }

// print prints v as JSON, or calls text.
func (f *format) print(w io.Writer, v any, text func(io.Writer) error) error {
	if *f == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	return text(redact.NewPrinter(w))
}

// show prints what read finds out about a deployment.
func show[T any](ctx context.Context, streams console.Streams, of *deployment.Flags, as *format,
	read func(context.Context, *deployment.Deployment) (T, error), text func(io.Writer, T) error,
) error {
	return of.Do(ctx, streams, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		found, err := read(ctx, d)
		if err != nil {
			return err
		}
		return as.print(streams.Out, found, func(w io.Writer) error { return text(w, found) })
	})
}

// newTable aligns the columns of lines; the caller flushes it.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }
