package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// upgradeOptions are those of an install, without the selection of steps.
type upgradeOptions struct {
	install installOptions
	to      string
	style   string
	resume  bool
}

// NewUpgrade is slipway upgrade.
func NewUpgrade(p *source.Program) *cobra.Command {
	var o upgradeOptions
	cmd := &cobra.Command{
		Use: "upgrade", Short: "Upgrade the platform to another release", Example: `  slipway upgrade --to 2.0.0
  slipway upgrade --name shop --platform ./shop-2.0.0`,
		Args: usage.NoArgs, RunE: console.Run("", o.run),
	}
	set := cmd.Flags()
	o.install.deployment.AddFlags(cmd, p)
	o.install.deployment.Release.AddFlags(set)
	o.addFlags(set)
	set.BoolVar(&o.resume, "resume", false, "continue the unfinished upgrade: same release, backup and style")
	o.install.addRun(set, "parallel", "lock-timeout", "keep-cluster", "unpublished", "take-ownership")
	o.install.approval.addFlags(set)
	return cmd
}

func (o *upgradeOptions) addFlags(set *pflag.FlagSet) {
	set.StringVar(&o.to, "to", "", "version to upgrade to; that of the configuration or of --platform if left out")
	set.StringVar(&o.style, "style", "", "graceful (the default), or in-place: migrations stop what uses the data")
}

func (o *upgradeOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := o.check(); err != nil {
		return err
	}
	began := time.Now()
	from, route, err := o.path(ctx, io)
	if err != nil {
		return err
	}
	if len(route) > 1 && o.install.approval.digest != "" {
		return usage.Errorf("a plan is of one upgrade, and %s are %d: give --to %s with --approve, then plan the next one", strings.Join(route, ", "), len(route), fault.Quote(route[0]))
	}
	for n, version := range route {
		if len(route) > 1 {
			fmt.Fprintf(io.Err, "upgrade %d of %d: to release %s\n", n+1, len(route), version)
		}
		at := &leg{version: version, rest: route[n+1:]}
		done, err := o.upgrade(ctx, io, at)
		if err == nil && !done {
			said := nothingChanged
			if n > 0 {
				said = "The platform stays at release " + route[n-1] + ".\n"
			}
			_, err = fmt.Fprint(io.Text(), said)
		}
		if err != nil || !done {
			return err
		}
		route[n] = at.version
	}
	io.Err.End()
	last := route[len(route)-1]
	_, err = fmt.Fprintf(io.Text(), "\nupgraded from %s to %s in %s\n", from, last, time.Since(began).Round(time.Second))
	return err
}

// path returns the installed release, and the versions that lead from it to the wanted one.
func (o *upgradeOptions) path(ctx context.Context, io console.Streams) (from string, route []string, err error) {
	f := &o.install.deployment
	err = f.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) (err error) {
		if from, err = d.Installed(ctx); err != nil {
			return err
		}
		if o.resume {
			route, err = o.unfinished(ctx, d)
			return err
		}
		route, err = f.Release.Route(d.Config, from, o.to)
		return err
	})
	return from, route, err
}

// leg is one of several upgrades.
type leg struct {
	version string   // of its release; empty until the configured release is read
	rest    []string // versions of the releases after it
}

// upgrade upgrades the platform to the release of a leg; done is false if the user declines.
func (o *upgradeOptions) upgrade(ctx context.Context, io console.Streams, at *leg) (done bool, err error) {
	f := &o.install.deployment
	err = f.Do(ctx, io, o.install.how(config.Upgrade, o.prepare(at)), func(ctx context.Context, d *deployment.Deployment) (err error) {
		if done, err = o.install.approval.ask(ctx, io, d, stages.Upgrade()); err != nil || !done {
			return err
		}
		record, err := o.install.conduct(ctx, io, d, stages.Upgrade())
		if err != nil && record != nil && conductor.BackedUp(record) {
			io.Err.End()
			fmt.Fprintf(io.Err, "the upgrade to %s is not finished, and nothing was deleted; to go on: %s; to go back: %s\n",
				at.version, d.Line.Command("upgrade --resume"), d.Line.Command("rollback"))
		}
		return err
	})
	return done, err
}

func (o *upgradeOptions) prepare(at *leg) deployment.Prepare {
	f := &o.install.deployment
	return func(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
		f.Release.Choose(c.Config, at.version)
		c.Change = contract.Change{Resume: o.resume, Style: o.style}
		if err := f.Release.Open(ctx, c.Config, f.Source.Path, from.Anew, c); err != nil {
			return err
		}
		if err := f.Release.CheckVersion(c.Config, c.Release, at.version); err != nil {
			return err
		}
		at.version = c.Release.Version
		c.Path.Later, c.Path.Flags = at.rest, o.planFlags()
		return o.install.complete(ctx, io, c, from)
	}
}

// planFlags are the flags with which slipway plan plans the same upgrade.
func (o *upgradeOptions) planFlags() string {
	var flags []string
	if o.to != "" {
		flags = append(flags, "--to "+fault.Quote(o.to))
	}
	if o.style != "" {
		flags = append(flags, "--style "+fault.Quote(o.style))
	}
	return strings.Join(flags, " ")
}

func (o *upgradeOptions) check() error {
	if !slices.Contains([]string{"", contract.Graceful, contract.InPlace}, o.style) {
		return usage.Errorf("--style is %q; give %s or %s", o.style, contract.Graceful, contract.InPlace)
	}
	return o.install.check()
}

// unfinished is the release of the last upgrade. The cluster knows whether it is unfinished.
func (o *upgradeOptions) unfinished(ctx context.Context, d *deployment.Deployment) ([]string, error) {
	last, err := lastOf(d.Backups(ctx))
	_, inGit := d.Config.ReleaseInGit() // a version is a ref there
	switch {
	case err == nil && last == nil:
		return nil, cmp.Or(atWork(d.Runs(ctx)), nothingToResume())
	case err != nil && !errors.Is(err, &fault.Fault{Code: contract.CodeNoBackup}):
		return nil, err
	case o.to != "" || inGit: // even if the newest backup is unreadable
		return []string{o.to}, nil
	case err != nil:
		return nil, err
	}
	return []string{last.To}, nil
}

// lastOf is the backup of the last upgrade; nil: none. An unreadable newer backup is a fault.
func lastOf(all []contract.BackupSummary, err error) (*contract.BackupSummary, error) {
	if err != nil {
		return nil, err
	}
	for _, b := range slices.Backward(all) {
		switch {
		case b.Problem != "":
			return nil, &fault.Fault{
				Code: contract.CodeNoBackup, Class: fault.Usage, Op: "find the backup of the last upgrade",
				Err: fmt.Errorf("the newest one, %s, cannot be read: %s", b.ID, b.Problem),
				Fix: "to go back to another one, which takes what came after it along: slipway rollback --backup ID (slipway backups lists them); to go on with an upgrade, name its release: slipway upgrade --resume --to VERSION",
			}
		case b.Reason == contract.ForUpgrade:
			return &b, nil
		}
	}
	return nil, nil
}

func nothingToResume() error {
	return &fault.Fault{
		Code: contract.CodeNothing, Class: fault.Usage, Op: "go on with the upgrade", Err: errors.New("no upgrade was begun: there is no backup of one"),
		Fix: "begin one: slipway upgrade --to VERSION",
	}
}
