package cli

import (
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
	cmd := onDeployment(&cobra.Command{
		Use: "report", Short: "Write a run's report: HTML, JSON, JUnit, Markdown, logs", Example: `  slipway report   # then open report/report.html
  slipway report --run 20260102-030405-abcdef --out failed`,
		Args: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage.Errorf("--out is empty; give a directory")
			}
			return errors.Join(noArgs(cmd, args), forReport(out))
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

// addRunID declares the flag that names a run.
func addRunID(set *pflag.FlagSet, id *string) {
	set.StringVar(id, "run", "", "id of the run, as slipway runs lists it; the last one if left out")
}

// forReport refuses a directory that holds anything but an earlier report.
func forReport(dir string) error {
	entries, err := os.ReadDir(dir)
	if len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	for _, e := range entries {
		if !report.Holds(e.Name()) {
			err = fmt.Errorf("it holds %s, which is no part of a report", e.Name())
			break
		}
	}
	if err == nil {
		var record []byte
		if record, err = bounded.File(filepath.Join(dir, report.RecordFile), bounded.Generated); err == nil {
			_, err = report.Decode(record)
		}
	}
	if err == nil {
		return nil
	}
	return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "write the report to " + dir, Err: err,
		Fix: "name a directory that does not exist, or that of an earlier report: slipway report --out DIR"}
}

// replace has write make a directory beside dir and then gives it dir's name. When write fails, dir
// is as it was. Where dir cannot be renamed, as a mount cannot, it is as it was, too.
func replace(dir string, write func(string) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 0 {
		return write(dir) // nothing to keep; it may be a mount, which cannot be renamed
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), ".slipway-*")
	if err != nil {
		return err
	}
	fresh, old := filepath.Join(beside, "new"), filepath.Join(beside, "old")
	defer func() { err = errors.Join(err, os.RemoveAll(fresh), os.Remove(beside)) }() // where old is still there, the error says so
	if err := write(fresh); err != nil {
		return err
	}
	if err := forReport(dir); err != nil { // something was put there meanwhile
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}
