package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
)

type destroyOptions struct {
	deployment  deployment.Flags
	lockTimeout time.Duration
	ignore      bool
	save        saveFlags
	approval    approval
}

func newDestroy(p *Program) *cobra.Command {
	var o destroyOptions
	cmd := &cobra.Command{
		Use: "destroy", Short: "Removes the platform and its cluster and checks that nothing is left; the records of its runs stay",
		Args: noArgs, RunE: run("", o.run),
	}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	addLockTimeout(cmd.Flags(), &o.lockTimeout)
	o.save.addFlags(cmd.Flags())
	o.approval.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.ignore, "ignore-not-found", false, "succeed even if no deployment of that name was ever installed")
	return cmd
}

func (o *destroyOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := errors.Join(o.save.check(), o.approval.check()); err != nil {
		return err
	}
	return o.remove(ctx, io)
}

// remove removes the deployment.
func (o *destroyOptions) remove(ctx context.Context, io console.Streams) error {
	prepare := func(_ context.Context, c *conductor.Options, _ deployment.Inputs) error {
		c.LockTimeout, c.Approve = o.lockTimeout, o.approval.digest
		return nil
	}
	return o.deployment.Do(ctx, io, deployment.Run{Workflow: config.Destroy, Prepare: prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		if err := o.mistyped(ctx, d); err != nil {
			return err
		}
		if wanted, err := o.approval.ask(ctx, io, d, stages.Destroy()); err != nil || !wanted {
			if err == nil {
				fmt.Fprint(io.Out, nothingChanged)
			}
			return err
		}
		record, err := d.Conduct(ctx, stages.Destroy())
		if err == nil {
			d.Session.EndWithRun()
		}
		err = summary(io, record, err)
		o.save.save(ctx, io, &o.deployment, d, record)
		return err
	})
}

// mistyped refuses a name that only the command line has, and under which nothing was
// ever installed. One that was removed before is known.
func (o *destroyOptions) mistyped(ctx context.Context, d *deployment.Deployment) error {
	if s := o.deployment.Source; o.ignore || s.Name == "" || s.File != "" {
		return nil
	}
	known, err := d.Known(ctx)
	if err != nil || known {
		return err
	}
	return neverInstalled(d.Config.Global.Name)
}

// neverInstalled is the fault of a name that nothing was installed under, with those of
// the stored configurations.
func neverInstalled(name string) error {
	f := &fault.Fault{
		Code: conductor.CodeNotThere, Class: fault.Usage, Op: "remove deployment " + name,
		Err: errors.New("nothing was ever installed under that name"),
		Fix: "name another one; slipway destroy --ignore-not-found takes it as done",
	}
	if folder, err := deployments.Default(); err == nil {
		_, err = folder.Find(name) // which lists them
		if none, ok := errors.AsType[*fault.Fault](err); ok {
			f.Err = fmt.Errorf("%w; %w", f.Err, none.Err)
		}
	}
	return f
}
