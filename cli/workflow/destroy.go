package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

type destroyOptions struct {
	runFlags
	deployment deployment.Flags
	ignore     bool
	crds       bool
	approval   approval
}

// NewDestroy is slipway destroy.
func NewDestroy(p *source.Program) *cobra.Command {
	var o destroyOptions
	cmd := &cobra.Command{
		Use: "destroy", Short: "Remove the platform and its cluster, and check that nothing is left", Example: `  slipway destroy --name shop
  slipway destroy --name shop --yes   # in CI`,
		Long: "Remove the platform and its cluster, and check that nothing is left. Without a terminal, --yes is required.\n\n" +
			"CustomResourceDefinitions that the release keeps stay. --crds, now or in a later destroy, removes them with all their objects, even those of others.",
		Args: usage.NoArgs, RunE: console.Run("", o.run),
	}
	o.deployment.AddFlags(cmd, p)
	o.addRun(cmd.Flags(), "lock-timeout")
	o.approval.addFlags(cmd.Flags())
	addCRDs(cmd.Flags(), &o.crds)
	cmd.Flags().BoolVar(&o.ignore, "ignore-not-found", false, "succeed if no deployment of that name was ever installed")
	return cmd
}

func (o *destroyOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := errors.Join(o.approval.check(), o.approval.checkYes(io, "destroy")); err != nil {
		return err
	}
	return o.remove(ctx, io)
}

func addCRDs(set *pflag.FlagSet, v *bool) {
	set.BoolVar(v, "crds", false, "also remove CustomResourceDefinitions that the release keeps, and all their objects")
}

func (o *destroyOptions) remove(ctx context.Context, io console.Streams) error {
	prepare := func(_ context.Context, _ console.Streams, c *conductor.Options, _ deployment.Inputs) error {
		c.LockTimeout, c.Approve, c.Approval, c.CRDs = o.lockTimeout, o.approval.digest, o.approval.record(), o.crds
		return nil
	}
	return o.deployment.Do(ctx, io, deployment.Run{Workflow: config.Destroy, Prepare: prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		if there, err := o.find(ctx, io, d, d.Config.Global.Name); err != nil || !there {
			return err
		}
		if wanted, err := o.approval.ask(ctx, io, d, stages.Destroy()); err != nil || !wanted {
			if err == nil {
				fmt.Fprint(io.Text(), nothingChanged)
			}
			return err
		}
		record, err := d.Conduct(ctx, stages.Destroy())
		if err == nil {
			d.Session.EndWithRun()
		}
		err = summary(io, record, err)
		printReproduction(io, record)
		return err
	})
}

// traces are what a deployment has left.
type traces interface {
	Known(context.Context) (bool, error)
	Nothing(context.Context, stages.Workflow) (bool, error)
}

// find reports whether there is, or was, something to remove. If not, it rejects a name that is only on the
// command line, because it is probably mistyped.
func (o *destroyOptions) find(ctx context.Context, io console.Streams, d traces, name string) (bool, error) {
	if known, err := d.Known(ctx); err != nil || known {
		return known, err
	}
	if s := o.deployment.Source; !o.ignore && s.Name != "" && s.File == "" {
		return false, neverInstalled(name)
	}
	nothing, err := d.Nothing(ctx, stages.Destroy())
	if err != nil || !nothing {
		return err == nil, err
	}
	io.Err.End()
	fmt.Fprintf(io.Text(), "there is no deployment %s, and never was: nothing was removed\n", name)
	return false, nil
}

// neverInstalled is the fault of an unknown name. It lists the stored configurations.
func neverInstalled(name string) error {
	f := &fault.Fault{
		Code: contract.CodeNotThere, Class: fault.Usage, Op: "remove deployment " + name,
		Err: errors.New("nothing was ever installed under that name"),
		Fix: "name another one; slipway destroy --ignore-not-found takes it as done",
	}
	if folder, err := config.DefaultFolder(); err == nil {
		_, err = folder.Find(name) // its error lists the names
		if none, ok := errors.AsType[*fault.Fault](err); ok {
			f.Err = fmt.Errorf("%w; %w", f.Err, none.Err)
		}
	}
	return f
}
