package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// upgradeOptions are those of an install, but for what limits that to a part of its steps
// or takes over what is others': each upgrade is a whole one.
type upgradeOptions struct {
	install installOptions
	to      string
}

func newUpgrade(p *Program) *cobra.Command {
	o := upgradeOptions{install: installOptions{program: p}}
	cmd := &cobra.Command{
		Use: "upgrade", Short: "Brings an installed platform to another release, through those between if it must",
		Args: noArgs, RunE: run("", o.run),
	}
	set := cmd.Flags()
	addDeployment(cmd, set, p, &o.install.deployment)
	o.install.deployment.Release.AddFlags(set)
	set.StringVar(&o.to, "to", "", "version of the release; the one that the configuration or --platform names if left out")
	set.StringVar(&o.install.tlsKey, "tls-key", "", "file with the private key of a given certificate, PEM; replaces tls.key")
	addLockTimeout(set, &o.install.lockTimeout)
	set.IntVar(&o.install.parallel, "parallel", 0, "how many steps may run at the same time; 0 is no limit")
	set.BoolVar(&o.install.background, "keep-cluster", false, "leave a background cluster, whatever the outcome: the next command joins it; slipway cluster --stop ends it")
	return cmd
}

func (o *upgradeOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := o.install.check(); err != nil {
		return err
	}
	began := time.Now()
	var from string
	var route []string
	f := &o.install.deployment
	err := f.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) (err error) {
		if from, err = d.Installed(ctx); err == nil {
			route, err = f.Release.Route(d.Config, from, o.to)
		}
		return err
	})
	if err != nil {
		return err
	}
	for n, version := range route {
		if len(route) > 1 {
			fmt.Fprintf(io.Err, "upgrade %d of %d: to release %s\n", n+1, len(route), version)
		}
		if version, err = o.upgrade(ctx, io, version); err != nil {
			return err
		}
		route[n] = version
	}
	io.Err.End()
	last := route[len(route)-1]
	_, err = fmt.Fprintf(io.Out, "\nupgraded from %s to %s in %s\n", from, last, time.Since(began).Round(time.Second))
	return err
}

// upgrade brings the platform to the release of a version, or to the one that the
// configuration names, and returns the version.
func (o *upgradeOptions) upgrade(ctx context.Context, io console.Streams, version string) (string, error) {
	f := &o.install.deployment
	how := deployment.Run{Workflow: config.Upgrade, Prepare: func(ctx context.Context, c *conductor.Options, from deployment.Inputs) error {
		f.Release.Choose(c.Config, version)
		if err := o.install.prepare(ctx, io, c, from); err != nil {
			return err
		}
		if err := f.Release.CheckVersion(c.Config, c.Release, version); err != nil {
			return err
		}
		version = c.Release.Version
		return nil
	}}
	if o.install.background {
		how.Lifetime = session.AfterRun
	}
	err := f.Do(ctx, io, how, func(ctx context.Context, d *deployment.Deployment) error {
		return o.install.conduct(ctx, io, d, stages.Upgrade())
	})
	return version, err
}
