package workflow

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
)

const testLong = `Run tests of the installed platform release, each in a container of its own.

SUITE is a suite of the release, usually smoke or full; full if left out. The suites apps-deploy,
apps-check and apps-destroy deploy, check and remove the release's workloads, for example before and
after an upgrade. A failed test stops no other; the exit code is then 4. The output of each test is in
the run's report (slipway report), with junit.xml for CI.`

// testOptions are those of an install of the installed release, and which of its tests run.
type testOptions struct {
	installOptions
	suite stages.Suite
}

// NewTest is slipway test.
func NewTest(p *source.Program) *cobra.Command {
	o := testOptions{installOptions: installOptions{known: true}}
	cmd := &cobra.Command{
		Use: "test [SUITE]", Short: "Run the platform's tests, or deploy, check or remove its test workloads", Example: `  slipway test smoke
  slipway test --component gitea`, Long: testLong,
		Args: usage.Takes(0, 1, "give one suite"), RunE: console.Run("stopping after the tests that run now", o.run),
	}
	set := cmd.Flags()
	o.deployment.AddFlags(cmd, p)
	o.deployment.Release.AddFlags(set)
	set.StringVar(&o.suite.Component, "component", "", "run the tests of this component, instead of a suite")
	o.addRun(set, "lock-timeout", "parallel")
	return cmd
}

func (o *testOptions) run(ctx context.Context, io console.Streams, args []string) error {
	o.suite.Name = platform.DefaultSuite
	if len(args) > 0 {
		o.suite.Name = args[0]
	}
	if o.suite.Component != "" && len(args) > 0 {
		return usage.Errorf("give a suite or --component, not both")
	}
	if err := o.check(); err != nil {
		return err
	}
	return o.deployment.Do(ctx, io, deployment.Run{Workflow: config.Test, Prepare: o.prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		record, err := d.Conduct(ctx, stages.Test(o.suite))
		return summary(io, record, err)
	})
}

// prepare opens the installed release, and checks that the run has the images of its tests.
func (o *testOptions) prepare(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
	c.Parallel, c.LockTimeout = o.parallel, o.lockTimeout
	version, err := installed(ctx, c)
	if err != nil {
		return err
	}
	f := &o.deployment
	f.Release.Choose(c.Config, version)
	if err := f.Release.Open(ctx, c.Config, f.Source.Path, from.Anew, c); err != nil {
		return err
	}
	if err := f.Release.CheckVersion(c.Config, c.Release, version); err != nil {
		return err
	}
	if err := c.Images.Check(ctx); err != nil {
		return err
	}
	return o.checkRelease(ctx, io, c)
}
