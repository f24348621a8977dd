package workflow

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
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

// reproduceOptions are those of an install, and the run to repeat.
type reproduceOptions struct {
	install   installOptions
	until, id string
	keep      bool
	command   []string // for the container of the last step

	from   *packing.Opened
	origin *packing.Source // what an upgrade began from; nil: unknown, or no upgrade
	was    *original
	named  bool // the user named the deployment
	began  bool // there is a deployment
	set    *pflag.FlagSet
}

// NewReproduce is slipway reproduce.
func NewReproduce(p *source.Program) *cobra.Command {
	o := reproduceOptions{install: installOptions{known: true}}
	cmd := &cobra.Command{
		Use: "reproduce [flags] [-- COMMAND…]", Short: "Repeat a packed run on a fresh local cluster, up to the failed step, and compare", Example: `  slipway reproduce --package run.tar.zst
  slipway reproduce --package run.tar.zst -- kubectl get pods -A`,
		Long: `Repeat a packed run on a fresh local cluster, up to the failed step, and compare.

COMMAND then runs in the container of that step, with its request; for a shell there:
dagger call reproduce-shell --package-file FILE terminal. At the end, Slipway removes the deployment,
unless --keep or COMMAND is given.`,
		DisableFlagsInUseLine: true, Args: afterDash, RunE: console.Run("", o.run),
	}
	set := cmd.Flags()
	o.set = set
	o.install.deployment.AddFlags(cmd, p)
	o.install.deployment.Release.AddFlags(set)
	for _, name := range []string{"config", "platform", "state"} { // the package has them
		_ = set.MarkHidden(name)
	}
	set.Lookup("name").Usage = "name of the deployment, not used before; repro- and a random number if left out"
	o.install.from.AddFlags(set)
	set.Lookup("package").Usage = "package of slipway save with the run"
	set.StringVar(&o.until, "until", "", "run up to this step, STAGE/STEP; the failed one if left out")
	set.BoolVar(&o.keep, "keep", false, "keep the deployment, for status, report and toolchain")
	o.install.addRun(set, "parallel", "lock-timeout")
	set.StringVar(&o.id, "id", "", "write the Dagger id of that container to this file instead of running a command")
	_ = set.MarkHidden("id")
	return cmd
}

// afterDash rejects arguments that are not after --.
func afterDash(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		return usage.Errorf("unexpected argument %q; a command goes after --", args[0])
	}
	return nil
}

// inside reports whether the container of the last step is wanted.
func (o *reproduceOptions) inside() bool { return o.id != "" || len(o.command) > 0 }

func (o *reproduceOptions) run(ctx context.Context, io console.Streams, args []string) (err error) {
	if o.install.from.File == "" {
		return usage.Errorf("give the package: --package FILE.tar.zst")
	}
	if err := o.install.check(); err != nil {
		return err
	}
	f := &o.install.deployment
	if o.from, err = o.install.from.Open(io, f); err != nil {
		return err
	}
	o.named, o.command = f.Source.Name != "", args
	substituted, err := o.localise(io)
	if err != nil {
		return err
	}
	record, digests, err := o.from.Ran()
	if err == nil {
		err = o.install.from.Use(f, o.from.Config, o.from.Release)
	}
	if err != nil {
		return err
	}
	o.was = originalOf(record, o.from.Engine, o.from.Kernel, digests)
	o.until = cmp.Or(o.until, o.was.step)
	if strings.HasPrefix(o.until, report.HooksStage+"/") { // a hook is no step
		o.until = ""
	}
	if !o.named {
		if err := o.set.Set("name", newName()); err != nil {
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
		if o.id != "" { // the caller, who gets the container, knows how the run ended
			same = nil
		}
		return errors.Join(err, same)
	}
	return errors.Join(err, same, o.remove(ctx, io))
}

func newName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return "repro-" + hex.EncodeToString(b[:])
}

// localise makes the run one on a fresh local deployment, and returns a line per substitution.
func (o *reproduceOptions) localise(io console.Streams) (substituted []string, err error) {
	sections := o.install.deployment.Source.Providers.Sections()
	if substituted, err = o.from.Localise(sections); err != nil {
		return nil, err
	}
	if o.origin, err = o.from.Origin(o.install.from.File); err != nil {
		return nil, err
	}
	if err := o.install.from.Ask(io, o.install.deployment.Source, o.from.Config, ""); err != nil {
		return nil, err
	}
	switch {
	case o.origin != nil:
		if _, err := o.origin.Localise(sections); err != nil {
			return nil, err
		}
		substituted = append(substituted, "the data of the deployment by that of a fresh install of release "+o.from.Before.Version)
		return substituted, o.install.from.Ask(io, o.install.deployment.Source, o.origin.Config, " before the upgrade")
	case o.from.Workflow != config.Install:
		substituted = append(substituted, fmt.Sprintf("the %s of the earlier installation, by an install on an empty cluster", o.from.Workflow))
	}
	return substituted, nil
}

// reproduce carries out the run and compares. same is nil if it ended as the original did.
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
		o.began = true
		record, err := d.Conduct(ctx, w)
		if record == nil || record.Outcome == report.Cancelled || record.Outcome == report.Succeeded && err != nil {
			return summary(io, record, err) // in the last case, the record could not be written
		}
		shown := *record
		if !o.keep || o.inside() {
			shown.Commands = nil // the end of this command says what to do next
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

// possible returns a fault unless the deployment can run w.
func (o *reproduceOptions) possible(ctx context.Context, d *deployment.Deployment, w stages.Workflow) error {
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

func (o *reproduceOptions) installBefore(ctx context.Context, io console.Streams) error {
	f, release := &o.install.deployment, o.from.Before.Version
	fmt.Fprintf(io.Err, "slipway: first an install of release %s, which the upgrade began from\n", release)
	if err := o.install.from.Use(f, o.origin.Config, o.origin.Release); err != nil {
		return err
	}
	err := f.Do(ctx, io, deployment.Run{Workflow: config.Install, Prepare: o.install.prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		o.began = true
		record, err := d.Conduct(ctx, stages.Install())
		return summary(io, record, err)
	})
	if err != nil {
		return fmt.Errorf("install release %s, which the upgrade began from: %w", release, err)
	}
	return o.install.from.Use(f, o.from.Config, o.from.Release)
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

// inStep runs a command in the container of a step, or hands the container over.
func (o *reproduceOptions) inStep(ctx context.Context, io console.Streams, d *deployment.Deployment, run, step string) error {
	if step == "" {
		return usage.Errorf("no step failed; name the one whose container is wanted: --until STAGE/STEP")
	}
	if o.id != "" {
		text, err := d.StepID(ctx, run, step)
		return writeFile(o.id, text, err)
	}
	return exitWith(d.StepShell(ctx, run, step, o.command, io.Out, io.Err))
}

// remove removes the deployment, even after the first interrupt.
func (o *reproduceOptions) remove(ctx context.Context, io console.Streams) error {
	io.Stop = nil
	d := destroyOptions{deployment: o.install.deployment, runFlags: o.install.runFlags, ignore: true, approval: approval{yes: true}}
	name := o.install.deployment.Source.Name
	if err := d.remove(ctx, io); err != nil {
		fmt.Fprintf(io.Err, "slipway: deployment %s is still there: slipway destroy --name %s\n", name, fault.Quote(name))
		return fmt.Errorf("remove deployment %s: %w", name, err)
	}
	fmt.Fprintf(io.Err, "slipway: deployment %s is removed; the reports of its runs stay: slipway runs --name %s\n", name, fault.Quote(name))
	return nil
}

// original is how a run ended and what it ran with, to compare it with another run.
type original struct {
	run, code, step string // see report.Run.Failure
	ended           bool   // by itself
	facts           map[string]string
	passed          map[string]bool // steps that succeeded, or had nothing to do
}

// String is how it ended.
func (o *original) String() string {
	how := "failed with " + cmp.Or(o.code, "no code")
	switch {
	case !o.ended:
		how = "ended from outside"
	case o.step == "" && o.code == "":
		how = "succeeded"
	}
	if o.step != "" {
		how += " in " + o.step
	}
	return how
}

// originalOf summarises a run. Its names become parts of lines, because anyone may have written the record.
func originalOf(r *report.Run, engine, kernel string, digests packing.Digests) *original {
	one := redact.OneLine
	o := &original{run: one(r.ID), ended: r.Outcome == report.Succeeded || r.Outcome == report.Failed, facts: map[string]string{
		"slipway": one(r.Slipway), "engine": one(engine), "kernel": one(kernel), "platform": one(r.Platform.Digest),
		"lock": one(r.Lock), "images": one(digests.All),
	}, passed: map[string]bool{}}
	code, step := r.Failure()
	o.code, o.step = one(code), one(step)
	if !o.ended {
		o.code = ""
	}
	for name, digest := range r.Tools {
		o.facts["tool "+one(name)] = one(digest)
	}
	for name, ref := range digests.Images {
		_, digest, _ := strings.Cut(ref, "@")
		o.facts["image "+one(name)] = one(digest)
	}
	for _, s := range r.Steps {
		o.passed[one(s.ID())] = s.Status.OK()
	}
	return o
}

// compare prints whether the run is ended as o did, up to a step, and what differs. same is a fault if not.
func (o *original) compare(w io.Writer, is *original, until string) (same, err error) {
	same = o.matches(is, until)
	verdict := "\nreproduced: " + is.String() + "\n"
	switch {
	case same == nil && o.passed[until] && is.code+is.step == "":
		verdict = "\nreproduced: up to " + until + " nothing failed, as in the original\n"
	case same != nil:
		verdict = "\nnot reproduced: the original " + o.String() + ", this run " + is.String() + "\n"
	}
	_, err = io.WriteString(w, verdict+"\n")
	t := console.NewTable(w)
	fmt.Fprintf(t, "\tORIGINAL\tHERE\n\t%s\t%s\n", o.run, is.run)
	all := maps.Clone(o.facts)
	maps.Copy(all, is.facts)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := cmp.Or(o.facts[name], "-"), cmp.Or(is.facts[name], "-")
		if a != b || name == "slipway" || name == "engine" {
			fmt.Fprintf(t, "%s\t%s\t%s\n", name, short(a), short(b))
		}
	}
	return same, errors.Join(err, t.Flush())
}

// matches returns a fault unless a run failed with o's code in o's step. If o was interrupted, only the step
// must match; up to a step that o passed, nothing may fail.
func (o *original) matches(is *original, until string) error {
	why := ""
	switch {
	case o.passed[until]:
		if is.code+is.step != "" && (is.code != o.code || is.step != o.step) {
			why = fmt.Sprintf("up to %s nothing failed in the original, this run %s", until, is)
		}
	case !o.ended:
		if is.step != o.step {
			why = fmt.Sprintf("the original %s, this run %s", o, is)
		}
	case is.code != o.code || is.step != o.step:
		why = fmt.Sprintf("the original %s, this run %s", o, is)
	}
	if why == "" {
		return nil
	}
	return &fault.Fault{Code: codeNotReproduced, Class: fault.Step, Op: "reproduce run " + o.run, Err: errors.New(why),
		Fix: "compare the differences above; to look at the deployment, reproduce it with --keep; its report stays in any case"}
}

// short is a digest as far as people compare it.
func short(s string) string {
	if sum, ok := strings.CutPrefix(s, "sha256:"); ok && len(sum) > 12 {
		return sum[:12]
	}
	return s
}
