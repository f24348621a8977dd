package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

type saveOptions struct {
	deployment  deployment.Flags
	packing     packing.Options
	key, verify string
	signer      string // public key
}

func newSave(p *Program) *cobra.Command {
	var o saveOptions
	cmd := &cobra.Command{
		Use: "save", Short: "Pack a run into one file, or verify such a file", Example: `  slipway save --out run.tar.zst   # the last run
  slipway save --verify run.tar.zst --package-key key.pub.pem`,
		Args: noArgs, RunE: atOnce(o.do),
	}
	set := cmd.Flags()
	addDeployment(cmd, p, &o.deployment)
	o.deployment.Release.AddFlags(set)
	addRunID(set, &o.packing.Run)
	set.StringVar(&o.packing.Out, "out", "", "file to write; slipway-NAME-RUN"+runpackage.Suffix+" if left out")
	set.StringVar(&o.key, "key", "", "private key that signs the package: a PEM file, or env:NAME; else advanced.save.key")
	set.StringVar(&o.verify, "verify", "", "verify this package instead of making one")
	addPackageKey(set, &o.signer)
	return cmd
}

func (o *saveOptions) do(ctx context.Context, streams console.Streams, _ []string) error {
	if o.verify != "" {
		return o.check(streams)
	}
	if o.signer != "" {
		return usage.Errorf("--package-key goes with --verify FILE")
	}
	what := &o.packing
	if what.Out != "" && !strings.HasSuffix(what.Out, runpackage.Suffix) {
		return usage.Errorf("--out is %s; give a file that ends with %s", what.Out, runpackage.Suffix)
	}
	if o.key != "" {
		private, text, err := secrets.PrivateKey(o.key)
		if err != nil {
			return err
		}
		what.Key, what.Secrets = private, []string{text}
	}
	return o.deployment.Do(ctx, streams, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		made, err := packing.Make(ctx, &o.deployment, d, *what)
		if err == nil {
			printPacked(streams, made)
		}
		return err
	})
}

func printPacked(streams console.Streams, made *packing.Packed) {
	streams.Err.End() // both streams may be the same terminal
	if len(made.Absent) > 0 {
		fmt.Fprintf(streams.Err, "slipway: these secrets are not at hand, and so could not be searched for once more: %s\n", strings.Join(made.Absent, ", "))
	}
	if len(made.Info.Hidden) > 0 {
		fmt.Fprintf(streams.Err, "slipway: the package has no value for what looks like a secret: %s\n", strings.Join(made.Info.Hidden, ", "))
	}
	if made.Info.OtherImages {
		fmt.Fprintln(streams.Err, "slipway: the bundle or lock is another than that of the run: the package has the digests of the run's tools, and none of its images")
	}
	if made.Lacks != "" {
		fmt.Fprintf(streams.Err, "slipway: the package has nothing of what was there before the upgrade, which so is reproduced by an install on an empty cluster: %s\n", made.Lacks)
	}
	fmt.Fprintf(streams.Out, "%s: run %s, %d files, %d KiB\n", made.File, made.Info.Run, made.Files, (made.Bytes+1023)>>10)
}

func (o *saveOptions) check(io console.Streams) error {
	if o.packing.Run != "" || o.packing.Out != "" || o.key != "" {
		return usage.Errorf("--run, --out and --key make a package; --verify looks at one, with --package-key FILE")
	}
	p, err := packing.Verify(o.verify, o.signer)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Text(), "%s is whole: %d files, %s\n", redact.OneLine(o.verify), len(p.Files), p.Digest)
	fmt.Fprintf(io.Text(), "run %s, %s of %s: %s\n", p.Run, p.Workflow, p.Deployment, strings.TrimSpace(p.Outcome+" "+p.Code+" "+p.Step))
	if p.OtherImages {
		fmt.Fprintln(io.Text(), "its images are not known: it was made with another bundle or lock than the run")
	}
	switch {
	case !p.Signed:
		fmt.Fprintln(io.Text(), "nobody has signed it")
	case o.signer == "":
		fmt.Fprintln(io.Text(), "it has a signature; --package-key FILE verifies whose")
	default:
		fmt.Fprintln(io.Text(), p.SignedBy)
	}
	return nil
}

// codeRunsCommands: an unverified package would run commands here, or send credentials elsewhere.
const codeRunsCommands fault.Code = "PKG-012"

// packageFlags name a package to begin with.
type packageFlags struct {
	file, key string
	set       *pflag.FlagSet
}

func (p *packageFlags) addFlags(set *pflag.FlagSet) {
	p.set = set
	set.StringVar(&p.file, "package", "", "package of slipway save: its configuration and its platform release")
	addPackageKey(set, &p.key)
}

func addPackageKey(set *pflag.FlagSet, place *string) {
	set.StringVar(place, "package-key", "", "public key that must have signed the package: a PEM file, or env:NAME")
}

func (p *packageFlags) check() error {
	if p.key != "" && p.file == "" {
		return usage.Errorf("--package-key goes with a package: --package FILE%s", runpackage.Suffix)
	}
	return nil
}

// use makes f work on a configuration and a release. It sets the flags, so that suggested commands have them; not
// in the module, whose files nobody else has.
func (p *packageFlags) use(f *deployment.Flags, file, release string) error {
	if usage.InModule() {
		f.Source.File, f.Release.Dir = file, release
		return nil
	}
	return errors.Join(p.set.Set("config", file), p.set.Set("platform", release))
}

// open verifies the package, if there is one, and makes f work on its contents.
func (p *packageFlags) open(io console.Streams, f *deployment.Flags) (*packing.Opened, error) {
	if p.file == "" {
		return nil, nil
	}
	for _, name := range []string{"config", "platform", "platform-id"} {
		if other := p.set.Lookup(name); other != nil && other.Changed {
			return nil, usage.Errorf("give either --%s or a package, which has a configuration and a platform release; slipway configure --file %s writes a configuration to change", name, fault.Quote(p.file))
		}
	}
	opened, err := packing.Open(p.file, p.key, f.Source.Providers.Sections())
	if err != nil {
		return nil, err
	}
	if err := p.use(f, opened.Config, opened.Release); err != nil {
		return nil, err
	}
	f.Source.Brought, f.Secrets.Brought, f.Images.Brought = true, p.key == "", p.key == ""
	fmt.Fprintf(io.Err, "slipway: %s is whole: run %s of deployment %s, %s %s\n", redact.OneLine(p.file), opened.Run, opened.Deployment, opened.Platform.Name, opened.Platform.Version)
	return opened, nil
}

// ask prints where the configuration in file takes its secrets from, and rejects commands of an unverified package,
// which would run on this machine. when tells two configurations apart.
func (p *packageFlags) ask(io console.Streams, from source.Source, file, when string) error {
	text, err := bounded.File(file, bounded.Written)
	if err != nil {
		return err
	}
	cfg, err := from.Parse(text, nil)
	if err != nil {
		return err
	}
	if at := cfg.State.URL; at != "" && from.State == "" {
		fmt.Fprintf(io.Err, "slipway: its state%s is in %s\n", when, redact.OneLine(at))
		if p.key == "" {
			return p.untrusted("use the state where "+p.file+" says", fmt.Errorf("credentials of this machine would go to %s", redact.OneLine(at)), "if you know that place, name it: --state "+fault.Quote(at)+"; ")
		}
	}
	refs := cfg.References(from.Providers.Sections())
	var commands []string
	for _, setting := range slices.Sorted(maps.Keys(refs)) {
		place := redact.OneLine(string(refs[setting]))
		fmt.Fprintf(io.Err, "slipway: its %s%s is taken from %s\n", redact.OneLine(setting), when, place)
		if refs[setting].Runs() {
			commands = append(commands, fmt.Sprintf("%s (%s)", place, redact.OneLine(setting)))
		}
	}
	if len(commands) == 0 || p.key != "" {
		return nil
	}
	return p.untrusted("take secrets from where "+p.file+" says", fmt.Errorf("it would run on this machine: %s", strings.Join(commands, ", ")), "")
}

// untrusted rejects what an unverified package wants. fix comes before the usual remedy.
func (p *packageFlags) untrusted(op string, err error, fix string) error {
	return &fault.Fault{Code: codeRunsCommands, Class: fault.Usage, Op: op, Err: err,
		Fix: fix + "if you trust it, verify who signed it: --package-key FILE; or write its configuration, change that, and install with it: slipway configure --out slipway.yaml --file " + fault.Quote(p.file)}
}

// printReproduction prints how to reproduce a failed run.
func printReproduction(io console.Streams, record *report.Run) {
	if record != nil && len(record.Reproduce) > 0 {
		io.Err.End()
		fmt.Fprint(io.Err, "\n"+report.ToReproduce+"\n  "+strings.Join(record.Reproduce, "\n  ")+"\n")
	}
}
