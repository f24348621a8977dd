package matrix

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeCellsFailed: cells of an upgrade matrix failed.
const codeCellsFailed fault.Code = "MTX-002"

type options struct {
	source   source.Source
	images   images.Flags
	secrets  secrets.Flags
	axes     Axes
	shard    string
	out      string
	parallel int
	set      *pflag.FlagSet
}

// NewCommand is slipway upgrade-matrix.
func NewCommand(p *source.Program) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "upgrade-matrix", Short: "Test upgrades between many releases, each in its own deployment", Example: `  slipway upgrade-matrix --from 1.0.0,1.1.0 --to 2.0.0 --style graceful,in-place --parallel 2`,
		Args: usage.NoArgs, RunE: console.Run("stopping the cells that run now", o.run),
	}
	o.set = cmd.Flags()
	o.source.Declare(cmd, p)
	o.source.AddState(o.set)
	o.add(o.set)
	o.set.StringSliceVar(&o.axes.From, "from", nil, "versions to install first, or directories of releases (with a slash)")
	o.set.StringSliceVar(&o.axes.To, "to", nil, "versions to upgrade to, or directories of releases")
	o.set.IntSliceVar(&o.axes.Scales, "scale", nil, "scales; that of the configuration if left out")
	o.set.StringSliceVar(&o.axes.Styles, "style", []string{contract.Graceful}, "styles of the upgrade: graceful, in-place")
	o.set.StringSliceVar(&o.axes.Faults, "faults", []string{NoFault}, "what happens to the upgrade: none, kill-at-each-step")
	o.set.IntVar(&o.parallel, "parallel", 1, "how many cells run at the same time")
	o.set.StringVar(&o.shard, "shard", "", "run part I of N of the cells: I/N")
	o.set.StringVar(&o.out, "out", "upgrade-matrix", "directory for the results; what has passed there is not run again")
	return cmd
}

// add declares the flags that each command of a cell gets.
func (o *options) add(set *pflag.FlagSet) {
	o.images.AddFlags(set)
	o.secrets.AddFlags(set)
}

// given are these flags as they were set.
func (o *options) given() []string {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(options).add(known)
	return usage.Given(o.set, func(name string) bool { return known.Lookup(name) != nil })
}

// check refuses what cannot be run, before anything is.
func (o *options) check() error {
	among := func(flag string, got []string, allowed ...string) error {
		for _, g := range got {
			if !slices.Contains(allowed, g) {
				return usage.Errorf("--%s is %q; give %s", flag, g, strings.Join(allowed, " or "))
			}
		}
		if len(got) == 0 {
			return usage.Errorf("--%s is empty; give %s", flag, strings.Join(allowed, " or "))
		}
		return nil
	}
	switch {
	case len(o.axes.From) == 0:
		return usage.Errorf("give --from, the versions of the releases that are installed first")
	case len(o.axes.To) == 0:
		return usage.Errorf("give --to, the versions of the releases that they are upgraded to")
	case o.parallel < 1:
		return usage.Errorf("--parallel is %d; give 1 or more", o.parallel)
	case o.out == "":
		return usage.Errorf("--out is empty; give a directory")
	case os.Getenv(daggercli.EnvSession) != "":
		return usage.Errorf("%s names a session, and the cells' clusters outlive none", daggercli.EnvSession)
	}
	return errors.Join(
		among("style", o.axes.Styles, contract.Graceful, contract.InPlace),
		among("faults", o.axes.Faults, NoFault, KillAtEachStep),
	)
}

// keep are the flags with which the cluster of a cell is left running between its commands.
func (o *options) keep(cfg *config.Config) ([]string, error) {
	provider, err := o.source.Providers.Get(cfg.Provider)
	if err != nil {
		return nil, err
	}
	environment, err := stages.EnvironmentOf(provider, stages.DeploymentOf(cfg))
	if err != nil || environment.Local == nil { // an existing cluster
		return nil, err
	}
	return []string{"--keep-cluster", "--unpublished"}, nil
}

// cells are those of this shard. Each has a way from its first release to the other.
func (o *options) cells(cfg *config.Config) ([]Cell, error) {
	var shard Shard
	if o.shard != "" {
		var err error
		if shard, err = ParseShard(o.shard); err != nil {
			return nil, usage.Errorf("--shard: %s", err)
		}
	}
	if len(o.axes.Scales) == 0 {
		o.axes.Scales = []int{cfg.Global.Scale}
	}
	all := o.axes.Cells()
	if len(all) == 0 {
		return nil, usage.Errorf("--from and --to name the same release")
	}
	var wrong []error
	versions := slices.DeleteFunc(slices.Concat(o.axes.From, o.axes.To), IsDir)
	if _, inGit := cfg.ReleaseInGit(); len(versions) > 0 && (inGit || cfg.ReleaseIsPath()) {
		return nil, usage.Errorf("the configuration has a release of your own, %s, and a version such as %s is one of the reference platform; name directories with your releases: slipway upgrade-matrix --from ./DIR --to ./DIR", cfg.Platform.Release, versions[0])
	}
	for _, c := range all {
		if IsDir(c.From) || IsDir(c.To) {
			continue
		}
		cell := *cfg
		cell.Platform.Release = c.From
		if _, err := new(source.Release).Route(&cell, c.From, c.To); err != nil {
			wrong = append(wrong, err)
		}
	}
	if err := console.Together(wrong...); err != nil {
		return nil, err
	}
	return shard.Cells(all), nil
}

// inputs returns the digest of everything that decides a cell's result. It rejects what an install rejects.
func (o *options) inputs(ctx context.Context, cfg *config.Config) (func(Cell) string, error) {
	own, images := *cfg, ""
	_, err := o.images.Pins(&own)
	if err == nil {
		err = o.images.Check(ctx)
	}
	if err == nil {
		images, err = o.images.Digest()
	}
	wrong, releases := []error{err}, map[string]string{}
	for _, dir := range slices.Concat(o.axes.From, o.axes.To) {
		if !IsDir(dir) {
			continue
		}
		_, err := (&source.Release{Dir: dir}).Load(cfg, o.source.Path)
		if err == nil {
			releases[dir], err = platform.Digest(os.DirFS(dir))
		}
		wrong = append(wrong, err)
	}
	source := o.source.Program.Source
	if source == "" { // unknown sources: no earlier result counts
		source = rand.Text()
	}
	return func(c Cell) string {
		all := []string{o.source.Version, source, string(cfg.Canonical()), images, releases[c.From], releases[c.To]}
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(strings.Join(all, "\x00"))))
	}, console.Together(wrong...)
}

func (o *options) run(ctx context.Context, io console.Streams, _ []string) error {
	if err := o.check(); err != nil {
		return err
	}
	cfg, err := o.source.Load(io)
	if err != nil {
		return err
	}
	cells, err := o.cells(cfg)
	if err != nil {
		return err
	}
	keep, err := o.keep(cfg)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	inputs, err := o.inputs(ctx, cfg)
	if err != nil {
		return err
	}
	say := func(text string) { fmt.Fprintf(io.Err, "%s\n", text) }
	commands := &Commands{
		Program: program, Given: o.given(), Keep: keep, Inputs: inputs, Results: Results(o.out), Say: say, AtOnce: ctx.Done(),
		Configuration: func(c Cell) []byte {
			cell := *cfg
			cell.Global.Scale = c.Scale
			if !IsDir(c.From) {
				cell.Platform.Release = c.From
			}
			return cell.Canonical()
		},
	}
	ctx, end := console.UntilInterrupt(ctx, io.Stop, console.Interrupted("run the matrix", "run the same command again: upgrades that have passed are kept"))
	defer end()
	return o.finish(ctx, io, Run(ctx, cells, o.parallel, func(ctx context.Context, c Cell) Result {
		r := commands.Do(ctx, c)
		say(fmt.Sprintf("%s: %s", r.Cell, r.Why()))
		return r
	}))
}

// finish shows what came of all cells.
func (o *options) finish(ctx context.Context, io console.Streams, all []Result) error {
	var failed []string
	for _, r := range all {
		if r.Outcome == Failed {
			failed = append(failed, r.Cell.String())
		}
	}
	io.Err.End()
	err := errors.Join(Results(o.out).Summarise(all), Table(io.Out, all))
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(failed) > 0:
		return &fault.Fault{
			Code: codeCellsFailed, Class: fault.Step, Op: "run the matrix",
			Err: fmt.Errorf("%d of %d cells failed: %s", len(failed), len(all), strings.Join(failed, "; ")),
			Fix: "see " + filepath.Join(o.out, "matrix.html") + " and the logs of each cell beside it; to run the failed ones again, run the same command again",
		}
	}
	return nil
}
