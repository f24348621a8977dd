package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// rollbackOptions are those of an upgrade to the backup's release.
type rollbackOptions struct {
	install installOptions
	backup  string
	yes     bool
}

// NewRollback is slipway rollback.
func NewRollback(p *source.Program) *cobra.Command {
	o := rollbackOptions{install: installOptions{known: true}}
	cmd := &cobra.Command{
		Use: "rollback", Short: "Restore the release, the configuration and the data of a backup", Example: `  slipway rollback --name shop`,
		Long: `Restore the release, the configuration and the data of a backup.

If every migration can be undone, Slipway undoes them, which loses nothing. Otherwise it asks (without
a terminal, --yes is required), backs up the present data, stops what uses the data, and replaces it
with the backup. If a check of the replaced data fails at the end, that is a warning.`,
		Args: usage.NoArgs, RunE: console.Run("", o.run),
	}
	set := cmd.Flags()
	o.install.deployment.AddFlags(cmd, p)
	set.StringVar(&o.backup, "backup", "", "id of the backup; that of the last upgrade if left out")
	set.BoolVarP(&o.yes, "yes", "y", false, "replace data without asking, where a migration cannot be undone")
	usage.Group(set, usage.Run, "yes")
	o.install.addRun(set, "parallel", "lock-timeout", "keep-cluster", "unpublished", "take-ownership")
	return cmd
}

func (o *rollbackOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := o.install.check(); err != nil {
		return err
	}
	began := time.Now()
	o.install.approval.yes = o.yes
	var b *contract.Backup
	var files fs.FS
	err := o.install.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) (err error) {
		b, files, err = o.find(ctx, d)
		return err
	})
	if err != nil {
		return err
	}
	err = o.rollBack(ctx, io, b, files)
	if errors.Is(err, &fault.Fault{Code: contract.CodeConsent}) && !o.yes && io.Interactive() {
		said, asked := consent(ctx, io, "ask whether data may be replaced", fmt.Sprintf("\n%v\nGo on? [y/N] ", err))
		if said != nil {
			o.yes, o.install.approval.answer = true, said
			err = o.rollBack(ctx, io, b, files)
		}
		err = cmp.Or(asked, err)
	}
	if err != nil {
		return err
	}
	io.Err.End()
	_, err = fmt.Fprintf(io.Text(), "\nrolled back to %s, backup %s, in %s\n", b.From, b.ID, time.Since(began).Round(time.Second))
	return err
}

// find finds the backup, and the files of its release.
func (o *rollbackOptions) find(ctx context.Context, d *deployment.Deployment) (*contract.Backup, fs.FS, error) {
	if _, err := d.Installed(ctx); err != nil {
		return nil, nil, err
	}
	if o.backup != "" {
		return d.Backup(ctx, o.backup)
	}
	last, err := lastOf(d.Backups(ctx))
	if err != nil {
		return nil, nil, err
	}
	if last == nil {
		return nil, nil, cmp.Or(atWork(d.Runs(ctx)), noBackup())
	}
	return d.Backup(ctx, last.ID)
}

// atWork is the fault of a running run, which may make a backup; nil if none runs.
func atWork(runs []contract.RunSummary, err error) error {
	for _, r := range slices.Backward(runs) {
		if r.Outcome == report.Running {
			return lock.Refused(fmt.Errorf("run %s, of workflow %s, works on the deployment since %s", r.ID, r.Workflow, r.Started.Format(time.RFC3339)))
		}
	}
	return err
}

func noBackup() error {
	return &fault.Fault{
		Code: contract.CodeNoBackup, Class: fault.Usage, Op: "find the backup to go back to", Err: errors.New("no upgrade has made one"),
		Fix: "there is nothing to go back to; to repair differences from the installed release: slipway install",
	}
}

// rollBack goes back to a backup, whose release is in files.
func (o *rollbackOptions) rollBack(ctx context.Context, io console.Streams, b *contract.Backup, files fs.FS) error {
	how := o.install.how(config.Rollback, func(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
		was, err := config.Load(b.Config, config.Options{File: "the configuration in backup " + b.ID})
		if err != nil {
			return err
		}
		if err := o.goBack(io, c.Config, was, b.ID); err != nil {
			return err
		}
		c.Change = contract.Change{Backup: b.ID, Named: o.backup != "", Restore: o.yes}
		if err := c.UsePlatform(ctx, files); err != nil {
			return err
		}
		return o.install.complete(ctx, io, c, from)
	})
	return o.install.deployment.Do(ctx, io, how, func(ctx context.Context, d *deployment.Deployment) error {
		_, err := o.install.conduct(ctx, io, d, stages.Rollback())
		return err
	})
}

// goBack makes cfg what it was in a backup, but for hooks and locations of secrets that cfg lacks: others may write
// to backups.
func (o *rollbackOptions) goBack(io console.Streams, cfg, was *config.Config, backup string) error {
	dropped, missing := cfg.GoBack(was)
	for _, name := range dropped {
		fmt.Fprintf(io.Err, "slipway: warning: the hook %s of the configuration in backup %s does not run: your configuration does not have it, or has another one\n", name, backup)
	}
	if len(missing) == 0 {
		return nil
	}
	var all []string
	for _, setting := range slices.Sorted(maps.Keys(missing)) {
		all = append(all, fmt.Sprintf("%s (there from %s)", redact.OneLine(setting), redact.OneLine(string(missing[setting]))))
	}
	return &fault.Fault{
		Code: config.CodeNoSecret, Class: fault.Usage, Op: "find the secrets of the configuration in backup " + backup,
		Err: fmt.Errorf("your configuration does not say where these are: %s; what a backup says is not followed, since others may write there", strings.Join(all, ", ")),
		Fix: "add these settings to your configuration, with a place for each, and name it: slipway rollback --config FILE",
	}
}
