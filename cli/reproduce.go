package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// The codes of reproducing a run.
const (
	// codeNotReproduced: the run ended in another way than the one in the package.
	codeNotReproduced fault.Code = "PKG-010"
	// codeNotFresh: there is a deployment of that name already, or was.
	codeNotFresh fault.Code = "PKG-011"
)

// reproduceOptions are those of an install on a deployment of its own, and the run that is repeated.
type reproduceOptions struct {
	install   installOptions
	until, id string
	keep      bool
	command   []string // for the container of the last step

	from   *packing.Opened
	origin *packing.Source // of an upgrade: what it began from; nil: nothing is known of that, or it is none
	was    *original
	named  bool   // somebody named the deployment
	began  bool   // there is a deployment
	ran    string // id of the last run on it that is not its removal; empty: none left a record
}

func newReproduce(p *Program) *cobra.Command {
	o := reproduceOptions{install: installOptions{program: p, known: true}}
	cmd := &cobra.Command{
		Use: "reproduce [flags] [-- COMMAND…]", Short: "Repeat a packed run on a fresh local cluster, up to the failed step, and compare", Example: `  slipway reproduce --package run.tar.zst
  slipway reproduce --package run.tar.zst -- kubectl get pods -A`,
		Long: `Repeat a packed run on a fresh local cluster, up to the failed step, and compare.

COMMAND then runs in the container of that step, with its request in place; for a shell there:
dagger call reproduce-shell --package-file FILE terminal. At the end the deployment is removed,
unless --keep or COMMAND is given.`,
		DisableFlagsInUseLine: true, Args: afterDash, RunE: run("", o.run),
	}
	set := cmd.Flags()
	addDeployment(cmd, p, &o.install.deployment)
	o.install.deployment.Release.AddFlags(set)
	for _, name := range []string{"config", "platform", "state"} { // of which the package says all
		_ = set.MarkHidden(name)
	}
	set.Lookup("name").Usage = "name of the deployment, not used before; repro- and a random number if left out"
	o.install.from.addFlags(set)
	set.Lookup("package").Usage = "package of slipway save with the run"
	set.StringVar(&o.until, "until", "", "run up to this step, STAGE/STEP; the failed one if left out")
	set.BoolVar(&o.keep, "keep", false, "keep the deployment, for status, report and toolchain")
	o.install.addRun(set, "parallel", "lock-timeout")
	set.StringVar(&o.id, "id", "", "write the Dagger id of that container to this file instead of running a command")
	_ = set.MarkHidden("id")
	return cmd
}

// afterDash refuses arguments that are no command after --.
func afterDash(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		return usage.Errorf("unexpected argument %q; a command goes after --", args[0])
	}
	return nil
}

// inside reports whether somebody wants the container of the last step.
func (o *reproduceOptions) inside() bool { return o.id != "" || len(o.command) > 0 }

func (o *reproduceOptions) run(ctx context.Context, io console.Streams, args []string) (err error) {
	if o.install.from.file == "" {
		return usage.Errorf("give the package: --package FILE.tar.zst")
	}
	if err := o.install.check(); err != nil {
		return err
	}
	f := &o.install.deployment
	if o.from, err = o.install.from.open(io, f); err != nil {
		return err
	}
	o.named, o.command = f.Source.Name != "", args
	substituted, err := o.localise(io)
	if err != nil {
		return err
	}
	record, digests, err := o.from.Ran()
	if err == nil {
		err = o.install.from.use(f, o.from.Config, o.from.Release)
	}
	if err != nil {
		return err
	}
	o.was = originalOf(record, o.from.Engine, o.from.Kernel, digests)
	o.until = cmp.Or(o.until, o.was.step)
	if strings.HasPrefix(o.until, report.HooksStage+"/") { // of the workflow's hooks, which are no steps
		o.until = ""
	}
	if !o.named {
		if err := o.install.from.set.Set("name", newName()); err != nil {
			return err
		}
	}
	fmt.Fprintf(io.Err, "slipway: reproducing run %s (%s) as %s, up to %s\n", o.from.Run, o.was, f.Source.Name, cmp.Or(o.until, "its end"))
	for _, line := range substituted {
		fmt.Fprintf(io.Err, "slipway: substituted: %s\n", line)
	}
	same, err := o.reproduce(ctx, io)
	if !o.began {
		return err
	}
	if o.keep || o.inside() {
		fmt.Fprintf(io.Err, "slipway: deployment %s stays: slipway status --name %s; slipway destroy --name %s removes it\n", f.Source.Name, fault.Quote(f.Source.Name), fault.Quote(f.Source.Name))
		if o.id != "" { // whoever takes the container over has read how the run ended
			same = nil
		}
		return errors.Join(err, same)
	}
	return errors.Join(err, same, o.remove(ctx, io))
}

// newName is a name for a deployment that nobody has.
func newName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return "repro-" + hex.EncodeToString(b[:])
}

// localise makes the run one on a fresh local deployment, and returns what was substituted by
// what, a line each.
func (o *reproduceOptions) localise(io console.Streams) (substituted []string, err error) {
	sections := o.install.deployment.Source.Providers.Sections()
	if substituted, err = o.from.Localise(sections); err != nil {
		return nil, err
	}
	if o.origin, err = o.from.Origin(o.install.from.file); err != nil {
		return nil, err
	}
	if err := o.install.from.ask(io, o.install.deployment.Source, o.from.Config, ""); err != nil {
		return nil, err
	}
	switch {
	case o.origin != nil:
		if _, err := o.origin.Localise(sections); err != nil {
			return nil, err
		}
		substituted = append(substituted, "the data of the deployment by that of a fresh install of release "+o.from.Before.Version)
		return substituted, o.install.from.ask(io, o.install.deployment.Source, o.origin.Config, " before the upgrade")
	case o.from.Workflow != config.Install:
		substituted = append(substituted, fmt.Sprintf("the %s of the earlier installation, by an install on an empty cluster", o.from.Workflow))
	}
	return substituted, nil
}

// reproduce carries the run out and compares. same is nil if it ended as the original; err
// says why there is nothing to compare.
func (o *reproduceOptions) reproduce(ctx context.Context, io console.Streams) (same, err error) {
	f, w, prepare := &o.install.deployment, stages.Install(), deployment.Prepare(o.install.prepare)
	possible := func(ctx context.Context, d *deployment.Deployment) error { return o.possible(ctx, d, w) }
	if o.origin != nil {
		w = stages.Upgrade()
		prepare = func(ctx context.Context, io console.Streams, c *conductor.Options, from deployment.Inputs) error {
			c.Change.Style = o.from.Before.Style
			return o.install.prepare(ctx, io, c, from)
		}
		// What is not possible is found before minutes are spent on an install.
		err := f.Do(ctx, io, deployment.Run{Workflow: w.Name, Prepare: prepare}, possible)
		if err == nil {
			err = o.installBefore(ctx, io)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.until != "" {
		o.install.until = []string{o.until}
	}
	err = f.Do(ctx, io, deployment.Run{Workflow: w.Name, Prepare: prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		if !o.began {
			if err := possible(ctx, d); err != nil {
				return err
			}
		}
		record, err := o.conduct(ctx, d, w)
		if record == nil || record.Outcome == report.Cancelled || record.Outcome == report.Succeeded && err != nil {
			return summary(io, record, err) // the last: its record could not be written, for one
		}
		shown := *record
		if !o.keep || o.inside() {
			shown.Commands = nil // what to do next is told at the end
		}
		if err := summary(io, &shown, nil); err != nil {
			return err
		}
		kernel, err := d.Kernel(ctx)
		if err != nil {
			return err
		}
		is := originalOf(record, record.Engine, kernel, packing.DigestsOf(d.Images))
		if same, err = o.was.compare(io.Text(), is, o.until); err != nil || !o.inside() {
			return err
		}
		return o.inStep(ctx, io, d, record.ID, cmp.Or(o.until, is.step))
	})
	return same, err
}

// conduct carries w out, and notes under which id its report is.
func (o *reproduceOptions) conduct(ctx context.Context, d *deployment.Deployment, w conductor.Workflow) (*report.Run, error) {
	o.began = true
	record, err := d.Conduct(ctx, w)
	if record != nil {
		o.ran = record.ID
	}
	return record, err
}

// possible returns a fault unless w can be carried out on a deployment.
func (o *reproduceOptions) possible(ctx context.Context, d *deployment.Deployment, w conductor.Workflow) error {
	if o.named {
		if known, err := d.Known(ctx); err != nil || known {
			return cmp.Or(err, notFresh(d.Config.Global.Name))
		}
	}
	if o.until == "" {
		return nil
	}
	steps, err := d.Steps(w)
	if err == nil && !slices.Contains(steps, o.until) {
		err = notAgain(o.was.run, o.until, w.Name)
	}
	return err
}

// installBefore installs what an upgrade began from.
func (o *reproduceOptions) installBefore(ctx context.Context, io console.Streams) error {
	f, release := &o.install.deployment, o.from.Before.Version
	fmt.Fprintf(io.Err, "slipway: first an install of release %s, which the upgrade began from\n", release)
	if err := o.install.from.use(f, o.origin.Config, o.origin.Release); err != nil {
		return err
	}
	err := f.Do(ctx, io, deployment.Run{Workflow: config.Install, Prepare: o.install.prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		record, err := o.conduct(ctx, d, stages.Install())
		return summary(io, record, err)
	})
	if err != nil {
		return fmt.Errorf("install release %s, which the upgrade began from: %w", release, err)
	}
	return o.install.from.use(f, o.from.Config, o.from.Release)
}

func notFresh(name string) error {
	return &fault.Fault{Code: codeNotFresh, Class: fault.Usage, Op: "reproduce on deployment " + name,
		Err: errors.New("there is a deployment of that name, or was one, and what it left would not be run again"),
		Fix: "leave --name out, for a name that is new"}
}

func notAgain(run, step, workflow string) error {
	return &fault.Fault{Code: packing.CodeIncomplete, Class: fault.Usage, Op: "reproduce run " + run,
		Err: fmt.Errorf("%s is no step of an %s, which is what is run again", step, workflow),
		Fix: "name one that it has, with --until STAGE/STEP; tests are tried again with slipway install --package PACKAGE, then slipway test"}
}

// inStep runs a command in the container of a step of the run, or hands the container over.
func (o *reproduceOptions) inStep(ctx context.Context, io console.Streams, d *deployment.Deployment, run, step string) error {
	if step == "" {
		return usage.Errorf("no step failed; name the one whose container is wanted: --until STAGE/STEP")
	}
	if o.id != "" {
		text, err := d.StepID(ctx, run, step)
		return writeFile(o.id, text, err)
	}
	return exited(d.StepShell(ctx, run, step, o.command, io.Out, io.Err))
}

// remove removes the deployment, also after the first interrupt; the next one ends it.
func (o *reproduceOptions) remove(ctx context.Context, io console.Streams) error {
	io.Stop = nil
	d := destroyOptions{deployment: o.install.deployment, runFlags: o.install.runFlags, ignore: true, approval: approval{yes: true}}
	name := o.install.deployment.Source.Name
	if err := d.remove(ctx, io); err != nil {
		fmt.Fprintf(io.Err, "slipway: deployment %s is still there: slipway destroy --name %s\n", name, fault.Quote(name))
		return fmt.Errorf("remove deployment %s: %w", name, err)
	}
	fmt.Fprintln(io.Err, "slipway: "+removed(name, o.ran))
	return nil
}

// removed says that a deployment is gone, and where the report of a run on it is: without the
// id that would be the one of the removal.
func removed(name, run string) string {
	text := "deployment " + name + " is removed"
	if run != "" {
		text += "; the report of run " + run + " stays: slipway report --name " + fault.Quote(name) + " --run " + fault.Quote(run)
	}
	return text
}
