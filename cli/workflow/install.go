// Package workflow has the commands that run a deployment: its workflows, their plans, and its cluster.
package workflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/incontainer"
)

type installOptions struct {
	runFlags
	deployment deployment.Flags
	until      []string
	known      bool // an earlier run had the release: what its gates wait for is not checked
	from       packing.Flags
	approval   approval
	notice     string // text of the release that asks for approval; empty: none
}

// NewInstall is slipway install.
func NewInstall(p *source.Program) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use: "install", Short: "Install the platform; run again, it changes only what differs", Example: `  slipway install --config slipway.yaml
  slipway install --name shop --platform ./shop --keep-cluster
  slipway install --approve sha256:DIGEST   # of slipway plan: does exactly that, or nothing`,
		Args: usage.NoArgs, RunE: console.Run("", o.run),
	}
	set := cmd.Flags()
	o.deployment.AddFlags(cmd, p)
	o.deployment.Release.AddFlags(set)
	set.StringSliceVar(&o.until, "until", nil, "run only these steps (STAGE or STAGE/STEP) and all that they need")
	o.from.AddFlags(set)
	o.addRun(set, "parallel", "lock-timeout", "keep-cluster", "unpublished", "take-ownership")
	o.approval.addFlags(set)
	return cmd
}

// runFlags are the flags of commands that run steps.
type runFlags struct {
	parallel          int
	lockTimeout       time.Duration
	keep, unpublished bool // the cluster
	takeover          bool // of objects that others own
}

// addRun declares the flags with these names.
func (f *runFlags) addRun(set *pflag.FlagSet, names ...string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.IntVar(&f.parallel, "parallel", 0, "how many may run at the same time; 0 is no limit")
	all.DurationVar(&f.lockTimeout, "lock-timeout", incontainer.DefaultLockTimeout, "how long to wait for another run of the deployment")
	all.BoolVar(&f.keep, "keep-cluster", false, "leave the local cluster running, until slipway cluster --stop")
	all.BoolVar(&f.unpublished, "unpublished", false, "publish no ports of the cluster: only slipway reaches it")
	all.BoolVar(&f.takeover, "take-ownership", false, "take over existing objects of the platform, and a deployment whose state is lost")
	for _, name := range names {
		set.AddFlag(all.Lookup(name))
	}
	usage.Group(set, usage.Run, names...)
}

func (o *installOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := errors.Join(o.from.Check(), o.check()); err != nil {
		return err
	}
	opened, err := o.from.Open(io, &o.deployment)
	if err == nil && opened != nil {
		err = o.from.Ask(io, o.deployment.Source, opened.Config, "")
	}
	if err != nil {
		return err
	}
	return o.deployment.Do(ctx, io, o.how(config.Install, o.prepare), func(ctx context.Context, d *deployment.Deployment) error {
		agreed, err := o.agree(ctx, io, d.Agreed)
		if err != nil || !agreed {
			return err
		}
		_, err = o.conduct(ctx, io, d, stages.Install())
		return err
	})
}

func (o *installOptions) how(workflow string, with deployment.Prepare) deployment.Run {
	how := deployment.Run{Workflow: workflow, Unpublished: o.unpublished, Prepare: with}
	if o.keep {
		how.Lifetime = session.AfterRun
	}
	return how
}

// conduct carries out a workflow, and leaves the cluster running with --keep-cluster.
func (o *installOptions) conduct(ctx context.Context, io console.Streams, d *deployment.Deployment, w stages.Workflow) (*report.Run, error) {
	record, err := d.Conduct(ctx, w)
	err = summary(io, record, err)
	printReproduction(io, record)
	if !o.keep {
		return record, err
	}
	return record, d.Session.Publish(ctx, d.Conductor, func(ports []int) { clusterReady(io, d, d.Conductor.ClusterBind(), ports) }, err)
}

func (o *installOptions) check() error {
	if o.parallel < 0 {
		return usage.Errorf("--parallel is %d; give 0 or more", o.parallel)
	}
	if o.unpublished && !o.keep {
		return usage.Errorf("--unpublished is about the cluster that --keep-cluster leaves: give both")
	}
	if o.approval.digest != "" && len(o.until) > 0 {
		return usage.Errorf("--approve is for a whole run: leave out --until")
	}
	return o.approval.check()
}

func (o *installOptions) prepare(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
	source.Warn(io.Err, c.Config)
	if err := o.openRelease(ctx, io, c, from); err != nil {
		return err
	}
	return o.complete(ctx, io, c, from)
}

// complete is prepare after the release is open.
func (o *installOptions) complete(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
	c.Parallel, c.Until, c.LockTimeout, c.TakeOwnership, c.Approve = o.parallel, o.until, o.lockTimeout, o.takeover, o.approval.digest
	c.Approval = o.approval.record()
	release := c.Release
	if c.Config.Git.URL != "" {
		release = release.ForRepository()
	}
	if err := release.Fits(c.Config); err != nil {
		return err
	}
	var err error
	if o.notice, err = approvalText(c); err != nil {
		return err
	}
	if err := c.Images.Check(ctx); err != nil {
		return err
	}
	if err := o.checkRelease(ctx, io, c); err != nil {
		return err
	}
	return o.findSecrets(ctx, c, from)
}

// findSecrets finds the secrets of the steps. If one is missing, it also reports the missing ones of hooks.
func (o *installOptions) findSecrets(ctx context.Context, c *conductor.Options, from deployment.Inputs) error {
	var missing, noKey error
	c.UserSecrets, missing = secrets.Passwords(ctx, c.Config, from.Secrets)
	c.TLSKey, noKey = secrets.TLSKey(ctx, c.Config, from.Secrets)
	if missing == nil && noKey == nil {
		return nil
	}
	return errors.Join(missing, noKey, conductor.MissingSecrets(c.Config.HooksOf(from.Workflow), c.Secret))
}

// checkRelease checks that the run has the release's images, and that what gates wait for will exist.
func (o *installOptions) checkRelease(ctx context.Context, streams console.Streams, c *conductor.Options) error {
	check := source.Check{
		Program: o.deployment.Source.Program, Config: c.Config, Release: c.Release, Provider: c.Provider, Images: c.Images,
		Bundle: o.deployment.Images.Bundle, Registry: c.Images.Registry != nil, Known: o.known,
	}
	look := func() error { return check.Everything(ctx, streams.Err, io.Discard) } // slipway validate prints the notes
	switch from := o.deployment.Images; {
	case !slices.ContainsFunc(c.Release.Components, func(p platform.Component) bool { return p.Bundle != "" }):
		return look()
	case !check.Registry && from.BundleID == "": // without the engine
		check.Manifests = os.DirFS(filepath.Join(from.Bundle, "manifests"))
		return look()
	}
	dir, err := os.MkdirTemp("", "slipway-manifests-")
	if err != nil {
		return fmt.Errorf("make a directory for manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := c.Images.Manifests.Export(ctx, dir); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("read the bundle's manifests: %w", err)
	}
	check.Manifests = os.DirFS(dir)
	return look()
}

// summary prints a run's summary, whatever its outcome.
func summary(io console.Streams, record *report.Run, err error) error {
	io.Err.End() // both streams may be the same terminal
	if record == nil {
		return err
	}
	return errors.Join(err, record.Brief(io.Out))
}

// printReproduction prints how to reproduce a failed run.
func printReproduction(io console.Streams, record *report.Run) {
	if record != nil && len(record.Reproduce) > 0 {
		io.Err.End()
		fmt.Fprint(io.Err, "\n"+report.ToReproduce+"\n  "+strings.Join(record.Reproduce, "\n  ")+"\n")
	}
}

// openRelease opens the release to install. If an upgrade has installed a newer one, it keeps that and says so.
func (o *installOptions) openRelease(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
	f := &o.deployment
	kept, err := o.keptVersion(c.Config, func() (string, error) { return installed(ctx, c) })
	if err != nil {
		return err
	}
	names, said := c.Config.Platform.Release, c.Config.Has("platform.release")
	f.Release.Choose(c.Config, kept)
	if err := f.Release.Open(ctx, c.Config, f.Source.Path, from.Anew, c); err != nil || kept == "" {
		return err
	}
	by := "the default is"
	if said {
		by = f.Source.FileName() + " names"
	}
	fmt.Fprintf(io.Err, "slipway: keeping the installed release %s, although %s the older release %s\n", kept, by, names)
	return nil
}

// keptVersion is the version of the installed release if the configuration names an older one; else empty. For a
// platform other than the reference platform, the run rejects an older release (UPG-001).
func (o *installOptions) keptVersion(cfg *config.Config, installed func() (string, error)) (string, error) {
	newer := func(version string) bool { return platform.Older(cfg.Platform.Release, version) }
	if !o.deployment.Release.IsReference(cfg) || !slices.ContainsFunc(platforms.Versions(), newer) {
		return "", nil
	}
	version, err := installed()
	switch {
	case err != nil && fault.ClassOf(err) == fault.Usage: // no release is installed, or its cluster is lost
		return "", nil
	case err != nil:
		return "", store.Preflight(err)
	case !newer(version) || !slices.Contains(platforms.Versions(), version):
		return "", nil
	}
	return version, nil
}

// installed is the version of the installed release.
func installed(ctx context.Context, c *conductor.Options) (string, error) {
	has, err := conductor.New(*c)
	if err != nil {
		return "", err
	}
	return has.Installed(ctx)
}
