package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/stages/contract"
)

type backupsOptions struct {
	deployment deployment.Flags
	format     format
}

func newBackups(p *Program) *cobra.Command {
	var o backupsOptions
	cmd := &cobra.Command{Use: "backups", Short: "List the backups of a deployment", Example: `  slipway backups --name shop`, Args: noArgs, RunE: atOnce(o.run)}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	o.format.addFlag(cmd.Flags())
	return cmd
}

func (o *backupsOptions) run(ctx context.Context, streams console.Streams, _ []string) error {
	return show(ctx, streams, &o.deployment, &o.format, func(ctx context.Context, d *deployment.Deployment) ([]contract.BackupSummary, error) {
		return d.Backups(ctx)
	}, listBackups)
}

// listBackups prints a line for each backup, and one for each data in it; the newest last.
func listBackups(w io.Writer, all []contract.BackupSummary) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there is no backup; an upgrade makes one")
		return err
	}
	table := newTable(w)
	fmt.Fprintln(table, "BACKUP\tTIME (UTC)\tBEFORE\tFROM\tTO\tDATA\tBYTES\tCHECK")
	for _, b := range all {
		if b.Problem != "" {
			fmt.Fprintf(table, "%s\tnot usable: %s\n", b.ID, b.Problem)
			continue
		}
		row := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", b.ID, b.Time.UTC().Format(time.DateTime), b.Reason, b.From, b.To)
		if len(b.Data) == 0 {
			fmt.Fprintf(table, "%s\t-\t-\t-\n", row)
		}
		for i, d := range b.Data {
			if i > 0 {
				row = "\t\t\t\t"
			}
			check := d.Check
			if check == "" {
				check = "not checked"
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", row, d.Name, d.Bytes, check)
		}
	}
	return table.Flush()
}
