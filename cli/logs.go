package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/report"
)

func newLogs(p *Program) *cobra.Command {
	var run string
	var follow bool
	cmd := onDeployment(&cobra.Command{
		Use: "logs [STEP]", Short: "Print the logs of a run's steps", Args: takes(0, 1, "give one step or stage, or nothing"), Example: `  slipway logs orchestrator/sync
  slipway logs --follow`,
		Long: `Print the logs of the last run's steps, in the order of the steps; or of one step (stage/step) or
one stage.

With --follow it goes on until the run ends. Ctrl-C then ends only this command, not the run.
With the state in a bucket, the log of a step appears when the step has ended.`,
	}, p, &deployment.Flags{}, func(ctx context.Context, io console.Streams, d *deployment.Deployment, args []string) error {
		logs := stepLogs{out: io.Text(), of: strings.Join(args, ""), printed: map[string]int{}}
		id, outcome := run, report.Running
		err := repeat(ctx, func() (done bool, err error) {
			record, err := logs.read(ctx, d, id)
			if err != nil {
				return false, err
			}
			id, outcome = record.ID, record.Outcome // the same run, also when a newer one has begun
			return !follow || outcome != report.Running, nil
		})
		if err != nil || !follow {
			return errors.Join(err, context.Cause(ctx))
		}
		if ctx.Err() == nil {
			fmt.Fprintf(io.Err, "slipway: run %s: %s\n", id, outcome)
		}
		return nil
	})
	cmd.Flags().StringVar(&run, "run", "", "id of the run; the last one if not given")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what a running run adds, until it ends or you press Ctrl-C")
	return cmd
}

// stepLogs prints the logs of a run, each time what was added to them.
type stepLogs struct {
	out     io.Writer
	of      string         // a stage, or "stage/step"; empty: all steps
	printed map[string]int // how much of the log of each step, in bytes
	last    string         // step that was printed last
}

// read prints what was added to the logs of a run, the last one if run is empty, and returns its
// record.
func (l *stepLogs) read(ctx context.Context, d *deployment.Deployment, run string) (record *report.Run, err error) {
	dir, err := os.MkdirTemp("", "slipway-logs-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dir = filepath.Join(dir, "run")
	if _, err := d.Report(ctx, run, dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	text, err := bounded.FS(root.FS(), report.RecordFile, bounded.Generated)
	if err != nil {
		return nil, err
	}
	if record, err = report.Decode(text); err != nil {
		return nil, err
	}
	return record, l.print(root.FS(), record)
}

// print prints what was added to the logs in a run's directory.
func (l *stepLogs) print(dir fs.FS, run *report.Run) error {
	var all []string
	for _, s := range run.Steps {
		all = append(all, s.ID())
		if l.of != "" && l.of != s.ID() && l.of != s.Stage || s.Log == "" {
			continue
		}
		text, err := bounded.FS(dir, s.Log, bounded.Generated)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the log of %s: %w", s.ID(), err)
		}
		if run.Outcome == report.Running { // the rest of a line may be on its way
			text = text[:bytes.LastIndexByte(text, '\n')+1]
		}
		text = text[min(l.printed[s.ID()], len(text)):]
		if len(text) == 0 {
			continue
		}
		if l.of != s.ID() && l.last != s.ID() {
			gap := "\n"
			if l.last == "" {
				gap = ""
			}
			fmt.Fprintf(l.out, "%s==> %s <==\n", gap, s.ID())
		}
		l.printed[s.ID()] += len(text)
		l.last = s.ID()
		if _, err := l.out.Write(text); err != nil {
			return err
		}
	}
	is := func(id string) bool { return id == l.of || strings.HasPrefix(id, l.of+"/") }
	if l.of != "" && !slices.ContainsFunc(all, is) {
		return usage.Errorf("run %s has no step or stage %q; its steps are %s", run.ID, l.of, strings.Join(all, ", "))
	}
	return nil
}
