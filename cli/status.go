package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
)

type statusOptions struct {
	deployment deployment.Flags
	format     console.Format
	live       bool
	watch      bool
}

func newStatus(p *Program) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{Use: "status", Short: "Show steps and applications as the last run saw them", Example: `  slipway status --name shop --live
  slipway status --watch`, Args: usage.NoArgs, RunE: console.AtOnce(o.run)}
	o.deployment.AddFlags(cmd, p)
	o.format.AddFlag(cmd.Flags())
	o.deployment.Release.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.live, "live", false, "check applications and gates now; starts the cluster if it does not run")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "repeat this every few seconds, until Ctrl-C")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if o.watch && o.format == "json" {
		return usage.Errorf("give --watch or --output json, not both")
	}
	var how deployment.Run
	if o.live {
		how.Prepare = o.prepare
	}
	return o.deployment.Do(ctx, io, how, func(ctx context.Context, d *deployment.Deployment) error {
		if o.watch {
			return o.repeat(ctx, io, d)
		}
		status, err := d.Status(ctx, o.live)
		if status != nil { // even without a deployment
			err = errors.Join(err, o.format.Print(io.Out, status, status.Text))
		}
		return err
	})
}

// prepare opens the platform release for its gates. A release that only the configuration names may be out of reach.
func (o *statusOptions) prepare(ctx context.Context, _ console.Streams, opts *conductor.Options, from deployment.Inputs) error {
	f := &o.deployment
	err := f.Release.Open(ctx, opts.Config, f.Source.Path, from.Anew, opts)
	if err == nil || f.Release.Dir != "" || f.Release.ID != "" || ctx.Err() != nil {
		return err
	}
	opts.Release = nil
	opts.Warn(report.Clean(err.Error()))
	return nil
}

// repeatPause is the time between two looks at a deployment.
const repeatPause = 2 * time.Second

// repeat calls look until it is done or fails. Its usual end is an interrupt, which is no error.
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

// repeat shows the status again and again, with its error: the deployment may yet become healthy.
func (o *statusOptions) repeat(ctx context.Context, io console.Streams, d *deployment.Deployment) error {
	terminal := progress.Terminal(io.Out, os.Getenv)
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
		return false, frame(io.Out, terminal, text.String())
	})
}

// frame replaces the previous text on a terminal, cut to its height; elsewhere it appends.
func frame(w io.Writer, on progress.Options, text string) error {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	start := "\n"
	if on.Live {
		start = "\x1b[H\x1b[2J"
		if _, height := on.Size(); height > 1 && len(lines) >= height {
			lines = lines[:height-1]
		}
	}
	_, err := io.WriteString(w, start+strings.Join(lines, "\n")+"\n")
	return err
}
