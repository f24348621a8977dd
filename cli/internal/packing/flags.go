package packing

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
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// codeRunsCommands: an unverified package would run commands here, or send credentials elsewhere.
const codeRunsCommands fault.Code = "PKG-012"

// Flags name a package to begin with.
type Flags struct {
	File string
	key  string
	set  *pflag.FlagSet
}

// AddFlags declares --package and --package-key.
func (p *Flags) AddFlags(set *pflag.FlagSet) {
	p.set = set
	set.StringVar(&p.File, "package", "", "package of slipway save: its configuration and its platform release")
	AddKey(set, &p.key)
}

// AddKey declares --package-key.
func AddKey(set *pflag.FlagSet, place *string) {
	set.StringVar(place, "package-key", "", "public key that must have signed the package: a PEM file, or env:NAME")
}

// Check rejects a key without a package.
func (p *Flags) Check() error {
	if p.key != "" && p.File == "" {
		return usage.Errorf("--package-key goes with a package: --package FILE%s", runpackage.Suffix)
	}
	return nil
}

// Use makes f work on a configuration and a release. It sets the flags, so that suggested commands have them; not
// in the module, whose files nobody else has.
func (p *Flags) Use(f *deployment.Flags, file, release string) error {
	if usage.InModule() {
		f.Source.File, f.Release.Dir = file, release
		return nil
	}
	return errors.Join(p.set.Set("config", file), p.set.Set("platform", release))
}

// Open verifies the package, if there is one, and makes f work on its contents.
func (p *Flags) Open(io console.Streams, f *deployment.Flags) (*Opened, error) {
	if p.File == "" {
		return nil, nil
	}
	for _, name := range []string{"config", "platform", "platform-id"} {
		if other := p.set.Lookup(name); other != nil && other.Changed {
			return nil, usage.Errorf("give either --%s or a package, which has a configuration and a platform release; slipway configure --file %s writes a configuration to change", name, fault.Quote(p.File))
		}
	}
	opened, err := Open(p.File, p.key, f.Source.Providers.Sections())
	if err != nil {
		return nil, err
	}
	if err := p.Use(f, opened.Config, opened.Release); err != nil {
		return nil, err
	}
	f.Source.Brought, f.Secrets.Brought, f.Images.Brought = true, p.key == "", p.key == ""
	fmt.Fprintf(io.Err, "slipway: %s is whole: run %s of deployment %s, %s %s\n", redact.OneLine(p.File), opened.Run, opened.Deployment, opened.Platform.Name, opened.Platform.Version)
	return opened, nil
}

// Ask prints where the configuration in file takes its secrets from, and rejects commands of an unverified package,
// which would run on this machine. when tells two configurations apart.
func (p *Flags) Ask(io console.Streams, from source.Source, file, when string) error {
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
			return p.untrusted("use the state where "+p.File+" says", fmt.Errorf("credentials of this machine would go to %s", redact.OneLine(at)), "if you know that place, name it: --state "+fault.Quote(at)+"; ")
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
	return p.untrusted("take secrets from where "+p.File+" says", fmt.Errorf("it would run on this machine: %s", strings.Join(commands, ", ")), "")
}

// untrusted rejects what an unverified package wants. fix comes before the usual remedy.
func (p *Flags) untrusted(op string, err error, fix string) error {
	return &fault.Fault{Code: codeRunsCommands, Class: fault.Usage, Op: op, Err: err,
		Fix: fix + "if you trust it, verify who signed it: --package-key FILE; or write its configuration, change that, and install with it: slipway configure --out slipway.yaml --file " + fault.Quote(p.File)}
}
