package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

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

// changesExit is the exit code for changes with --detailed-exitcode.
const changesExit = 2

type planOptions struct {
	upgrade  upgradeOptions // an install and a destroy use a part of them
	format   console.Format
	detailed bool
	crds     bool
}

// NewPlan is slipway plan.
func NewPlan(p *source.Program) *cobra.Command {
	var o planOptions
	install := &o.upgrade.install
	cmd := &cobra.Command{
		Use: "plan [WORKFLOW]", Short: "Show what an install, upgrade or destroy would change", Example: `  slipway plan --config slipway.yaml
  slipway plan upgrade --to 2.0.0   # ends with the command that does exactly this`,
		Args: usage.Takes(0, 1, "give one workflow: install, upgrade or destroy"), RunE: console.AtOnce(o.run),
		ValidArgs: []string{config.Install, config.Upgrade, config.Destroy},
		Long: `Show what an install, upgrade or destroy would do; change nothing, and take no lock.
WORKFLOW is install, upgrade or destroy; install if left out.

It compares the configuration with the one of the last successful run, runs a Terraform plan, and
every step compares what it would make with what exists. Values of Secrets appear as digests; values
that only a run finds out are listed as unknown. A stopped local cluster is started for the plan, then
stopped. For an upgrade, it also lists backups, migrations and the releases between.

The plan is stored under its digest. With --approve DIGEST, install, upgrade and destroy do exactly
what it says, or nothing if anything has changed since.

With --detailed-exitcode, the exit code is 0 without changes and 2 with changes. 2 is also the exit
code for a wrong command line or configuration, which prints an error.`,
	}
	set := cmd.Flags()
	install.deployment.AddFlags(cmd, p)
	install.deployment.Release.AddFlags(set)
	o.upgrade.addFlags(set)
	install.addRun(set, "take-ownership")
	addCRDs(set, &o.crds)
	o.format.AddFlag(set)
	set.BoolVar(&o.detailed, "detailed-exitcode", false, "exit with 2 if there are changes")
	return cmd
}

func (o *planOptions) run(ctx context.Context, io console.Streams, args []string) error {
	name := config.Install
	if len(args) > 0 {
		name = args[0]
	}
	w, err := stages.Named(name)
	switch {
	case err != nil || !slices.Contains([]string{config.Install, config.Upgrade, config.Destroy}, w.Name):
		return usage.Errorf("there is no plan of %q; give install, upgrade or destroy", name)
	case o.upgrade.to != "" && w.Name != config.Upgrade:
		return usage.Errorf("--to is for slipway plan upgrade")
	case o.upgrade.style != "" && w.Name != config.Upgrade:
		return usage.Errorf("--style is for slipway plan upgrade")
	case o.upgrade.install.takeover && w.Name == config.Destroy:
		return usage.Errorf("--take-ownership is for slipway plan install and slipway plan upgrade")
	case o.crds && w.Name != config.Destroy:
		return usage.Errorf("--crds is for slipway plan destroy")
	}
	if err := o.upgrade.check(); err != nil {
		return err
	}
	var made *contract.Plan
	err = o.make(ctx, io, w, func(ctx context.Context, d *deployment.Deployment) (err error) {
		made, err = d.Plan(ctx, w)
		return err
	})
	if err != nil {
		return err
	}
	io.Err.End()
	if err := o.format.Print(io.Out, made, made.Text); err != nil {
		return err
	}
	if err := refusal(made); err != nil {
		return err
	}
	if !made.Empty() && o.format == "text" {
		fmt.Fprintf(io.Text(), "to carry it out: %s\n", o.approve(made))
	}
	if o.detailed && !made.Empty() {
		return console.Exit(changesExit)
	}
	return nil
}

// approve is the command that carries out a plan.
func (o *planOptions) approve(p *contract.Plan) string {
	command := fault.Quote(p.Workflow) + " --approve " + fault.Quote(p.Digest)
	upgrade := o.upgrade
	if len(p.Later) > 0 { // the plan is for the first of several upgrades
		upgrade.to = p.Release.To
	}
	if flags := upgrade.planFlags(); flags != "" {
		command += " " + flags
	}
	if o.upgrade.install.takeover {
		command += " --take-ownership"
	}
	if o.crds {
		command += " --crds"
	}
	return o.upgrade.install.deployment.Line().Command(command)
}

func (o *planOptions) make(ctx context.Context, io console.Streams, w stages.Workflow, do func(context.Context, *deployment.Deployment) error) error {
	var how deployment.Run
	switch {
	case w.Name == config.Upgrade:
		_, route, err := o.upgrade.path(ctx, io)
		if err != nil {
			return err
		}
		how.Prepare = o.upgrade.prepare(&leg{version: route[0], rest: route[1:]})
	case w.Removes:
		how.Prepare = func(_ context.Context, _ console.Streams, c *conductor.Options, _ deployment.Inputs) error {
			c.CRDs = o.crds
			return nil
		}
	default:
		how.Prepare = o.upgrade.install.prepare
	}
	return o.upgrade.install.deployment.Do(ctx, io, how, do)
}

// refusal returns the faults with which a run of the plan would end.
func refusal(p *contract.Plan) error {
	var errs []error
	for _, r := range p.Refused {
		errs = append(errs, &fault.Fault{
			Code: fault.Code(r.Code), Class: fault.Class(r.Exit), Op: "run " + r.What, Err: errors.New(r.Why),
			Fix: cmp.Or(r.Fix, "slipway explain "+fault.Quote(r.Code)+" says what to do about it"),
		})
	}
	return errors.Join(errs...)
}
