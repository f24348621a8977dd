package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/report"
)

func newReport(p *Program) *cobra.Command {
	var out, run string
	cmd := deployment.Command(&cobra.Command{
		Use: "report", Short: "Write a run's report: HTML, JSON, JUnit, Markdown, logs", Example: `  slipway report   # then open report/report.html
  slipway report --run 20260102-030405-abcdef --out failed`,
		Args: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage.Errorf("--out is empty; give a directory")
			}
			return errors.Join(usage.NoArgs(cmd, args), forReport(out))
		},
	}, p, &deployment.Flags{}, func(ctx context.Context, io console.Streams, d *deployment.Deployment, _ []string) error {
		id := ""
		err := replace(out, func(dir string) (err error) {
			id, err = d.Report(ctx, run, dir)
			return err
		})
		if err == nil {
			_, err = fmt.Fprintf(io.Text(), "%s: run %s\n", filepath.Join(out, report.PageFile), id)
		}
		return err
	})
	cmd.Flags().StringVar(&out, "out", "report", "directory to write; an earlier report in it is replaced")
	addRunID(cmd.Flags(), &run)
	return cmd
}

func addRunID(set *pflag.FlagSet, id *string) {
	set.StringVar(id, "run", "", "id of the run, as slipway runs lists it; the last one if left out")
}

// forReport rejects a directory that holds anything but an earlier report.
func forReport(dir string) error {
	entries, err := os.ReadDir(dir)
	if len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	for _, e := range entries {
		if !report.Holds(e.Name()) {
			err = fmt.Errorf("it holds %s, which is no part of a report", e.Name())
		}
	}
	var record []byte
	if err == nil {
		record, err = bounded.File(filepath.Join(dir, report.RecordFile), bounded.Generated)
	}
	if err == nil {
		_, err = report.Decode(record)
	}
	if err == nil {
		return nil
	}
	return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "write the report to " + dir, Err: err,
		Fix: "name a directory that does not exist, or that of an earlier report: slipway report --out DIR"}
}

// replace makes dir hold what write makes, and nothing else. If write fails, dir is as it was; if the
// copy fails, on a full disk, dir has a part of it.
func replace(dir string, write func(string) error) error {
	temporary, err := os.MkdirTemp("", "slipway-report-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	fresh := filepath.Join(temporary, "report")
	if err := cmp.Or(write(fresh), forReport(dir)); err != nil { // dir may have other files by now
		return err
	}
	earlier, _ := os.ReadDir(dir) // it may not exist
	for _, e := range earlier {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := os.CopyFS(dir, os.DirFS(fresh)); err != nil {
		return fmt.Errorf("write the report; remove %s, then run the same command again: %w", dir, err)
	}
	return nil
}
