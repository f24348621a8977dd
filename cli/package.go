package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// codeRunsCommands: the configuration of a package nobody vouched for would have commands run
// on this machine, or send its credentials elsewhere.
const codeRunsCommands fault.Code = "PKG-012"

// packageFlags name a package that a command begins with.
type packageFlags struct {
	file, key string
	set       *pflag.FlagSet
}

func (p *packageFlags) addFlags(set *pflag.FlagSet) {
	p.set = set
	set.StringVar(&p.file, "package", "", "package of slipway save: its configuration and its platform release")
	addPackageKey(set, &p.key)
}

// addPackageKey declares the flag of commands that read a package.
func addPackageKey(set *pflag.FlagSet, place *string) {
	set.StringVar(place, "package-key", "", "public key that must have signed the package: a PEM file, or env:NAME")
}

// check finds what is wrong with the flags.
func (p *packageFlags) check() error {
	if p.key != "" && p.file == "" {
		return usage.Errorf("--package-key goes with a package: --package FILE%s", runpackage.Suffix)
	}
	return nil
}

// use has f work on a configuration and a release. The flags say so from then on, so that
// commands in messages work on the same; not in the module, whose files nobody else has.
func (p *packageFlags) use(f *deployment.Flags, file, release string) error {
	if module.Active() {
		f.Source.File, f.Release.Dir = file, release
		return nil
	}
	return errors.Join(p.set.Set("config", file), p.set.Set("platform", release))
}

// open verifies the package, if there is one, and has f work on what is in it.
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

// ask says where a configuration of the package, which is in file, has its secrets taken from,
// and refuses commands unless somebody vouched for it: they would run on this machine, outside
// any container. when is which configuration it is, where there are several.
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

// untrusted refuses what a package wants for which nobody vouched. fix is a remedy that comes
// first.
func (p *packageFlags) untrusted(op string, err error, fix string) error {
	return &fault.Fault{Code: codeRunsCommands, Class: fault.Usage, Op: op, Err: err,
		Fix: fix + "if you trust it, verify who signed it: --package-key FILE; or write its configuration, change that, and install with it: slipway configure --out slipway.yaml --file " + fault.Quote(p.file)}
}

// tellReproduce prints the commands that reproduce a failed run elsewhere; there may be no record.
func tellReproduce(io console.Streams, record *report.Run) {
	if record != nil && len(record.Reproduce) > 0 {
		io.Err.End()
		fmt.Fprint(io.Err, "\n"+report.ToReproduce+"\n  "+strings.Join(record.Reproduce, "\n  ")+"\n")
	}
}
