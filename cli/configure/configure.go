// Package configure is `slipway configure`: it makes a configuration.
package configure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// Long is the text of the command's help.
const Long = `Write a configuration. On a terminal, a form asks; if the variable ACCESSIBLE is set, one question
after another, for screen readers. With --set or --answers, or without a terminal, nothing asks:
the command lists the fields without an answer or a default, and exits with 2.

The value of a field is the first of these: --set; --answers; its variable, such as
SLIPWAY_CONFIG_GLOBAL_NAME for global.name (slipway env prints them), which the form does not ask
for; its value in --file or the existing file; its default. With --set, a list has commas between
its items, @FILE is the contents of a file, and an empty value means the default.

Without --out, the file is stored under the deployment's name, for --name NAME and slipway use NAME.
It must not contain secrets, only references to them.`

// Command is `slipway configure`: it makes a configuration of an earlier one, flags and the user's answers.
type Command struct {
	options
	earlier
	cmd          *cobra.Command
	source       source.Source // checks what is made
	images       images.Flags
	secrets      secrets.Flags
	releaseFlags source.Release

	named    string // source of deployment, if not --name
	asks     bool   // the form asks
	foreign  bool   // the shell has variables of another deployment
	complete bool   // all given answers are in the draft, even those for the platform
}

type options struct {
	deployment string // its name
	sets       []string
	fragment   string // file with answers
	file       string // an earlier configuration or run
	packageKey string // file with the public key that a package must be signed with
	out        string
	force      bool
}

type earlier struct {
	base    []byte // of the current version; may be empty
	from    string // where it is from
	own     bool   // it is the existing file at the destination
	brought bool   // it is from elsewhere: none of its commands run here
	release string // the platform release in it
	kept    string // its directory, if the package contained it
	sent    string // a directory that only a package or a report names: never opened
}

// AddFlags declares the flags for cmd.
func (c *Command) AddFlags(cmd *cobra.Command, p *source.Program) {
	c.cmd, c.source.Program = cmd, p
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&c.deployment, "name", "n", "", "name of the deployment; its stored configuration is where this begins")
	set.StringArrayVar(&c.sets, "set", nil, "an answer, FIELD=VALUE or FIELD=@FILE; empty: the default; may be repeated")
	set.StringVar(&c.fragment, "answers", "", "file with answers, YAML as in a configuration; - is standard input")
	set.StringVarP(&c.file, "file", "f", "", "begin with this configuration, package of slipway save, or report of a run")
	packing.AddKey(set, &c.packageKey)
	set.StringVar(&c.out, "out", "", "file to write, instead of storing it by name; - is standard output")
	set.BoolVar(&c.force, "force", false, "without a form: replace an existing file other than that of --file")
	c.images.AddFlags(set)
	c.secrets.AddFlags(set)
	c.releaseFlags.AddFlags(set)
	source.CompleteName(cmd, "name")
}

func (c *Command) describe() *jsonschema.Schema {
	return config.Describe(c.source.Providers.Sections())
}

// Run writes a configuration, between the hooks of the existing one and the hooks of the new one.
func (c *Command) Run(ctx context.Context, io console.Streams) error {
	if err := c.begin(io); err != nil {
		return err
	}
	around := c.hooks(io)
	if err := around.before(ctx); err != nil {
		return err
	}
	text, err := c.make(ctx, io)
	switch {
	case err != nil:
		return around.after(ctx, around.old, err)
	case text == nil: // the user wants none
		gaveUp := &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "configure", Err: errors.New("nothing was written, as requested"), Fix: "run slipway configure again"}
		err := around.after(ctx, around.old, gaveUp)
		if _, hooks := errors.AsType[joined](err); hooks {
			return err
		}
		return nil
	}
	cfg, err := c.source.Parse(text, nil)
	if err != nil {
		return err
	}
	message, err := c.write(io, cfg, text)
	if err != nil {
		return around.after(ctx, around.old, err)
	}
	around.on.File = text
	_, err = fmt.Fprint(io.Out, message)
	return errors.Join(around.afterWrite(ctx, cfg), err)
}

// joined is the error of errors.Join: the outcome and errors of hooks.
type joined interface {
	error
	Unwrap() []error
}

// make makes the file from the form, or from flags without one; nil: the user wants none.
func (c *Command) make(ctx context.Context, io console.Streams) ([]byte, error) {
	f := c.form(io)
	if f == nil {
		return c.given(io)
	}
	c.asks = true
	ctx, release := console.UntilInterrupt(ctx, io.Stop, answers.ErrAborted)
	defer release()
	text, err := c.ask(ctx, io, f)
	if errors.Is(err, answers.ErrAborted) {
		return nil, &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "configure", Err: err, Fix: "nothing was written; run slipway configure again"}
	}
	return text, err
}

// form returns the form; nil if nobody can answer.
func (c *Command) form(io console.Streams) *answers.Form {
	f := &answers.Form{In: io.In, Out: io.Terminal, Accessible: os.Getenv("ACCESSIBLE") != ""}
	switch {
	case len(c.sets) > 0, c.fragment != "", io.Terminal == nil, usage.InModule():
		return nil
	case f.Accessible:
		return f
	case os.Getenv("CI") != "" && os.Getenv("CI") != "false": // its terminals have no user
		return nil
	case !io.Interactive():
		return nil
	}
	f.Accessible = os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == ""
	return f
}

// begin reads the earlier configuration: the one of --file, or the existing one.
func (c *Command) begin(io console.Streams) error {
	switch other := os.Getenv(source.EnvDeployment); {
	case c.deployment == "" && c.cmd.Flags().Changed("name"):
		return usage.Errorf("--name is empty; give a name")
	case other == "" || c.out != "" || usage.InModule():
	case c.deployment == "":
		c.deployment, c.named = other, source.EnvDeployment
		fmt.Fprintf(io.Err, "slipway: deployment %s (chosen with %s; --name chooses another)\n", other, source.EnvDeployment)
	}
	if other := os.Getenv(source.EnvDeployment); other != "" && other != c.deployment {
		c.foreign = true
		fmt.Fprintf(io.Err, "slipway: the variables of deployment %s (%s) are no answers here\n", other, source.EnvDeployment)
	}
	for _, set := range c.sets {
		if name, ok := strings.CutPrefix(set, "global.name="); ok && c.deployment != "" && name != c.deployment {
			return usage.Errorf("%s is %s and --set says global.name is %s; give one of them", cmp.Or(c.named, "--name"), c.deployment, name)
		}
	}
	if c.file == "-" && c.fragment == "-" {
		return usage.Errorf("give standard input to one of --file and --answers")
	}
	there, err := c.destination(c.deployment)
	if err != nil {
		return err
	}
	recorded, packed := false, strings.HasSuffix(c.file, runpackage.Suffix)
	switch {
	case c.packageKey != "" && !packed:
		return usage.Errorf("--package-key goes with --file and a package, FILE%s", runpackage.Suffix)
	case packed:
		c.from = c.file
		recorded = true
		c.base, err = c.fromPackage(io)
	case c.file != "":
		c.from = c.file
		c.base, recorded, err = source.Recorded(c.file, io)
	case there != "":
		if c.base, err = readIfThere(there); c.base != nil {
			c.from = there
		}
	}
	if err != nil {
		return unreadable("read the configuration to begin with", "give --file the path of a configuration, or of a run that slipway report has written", err)
	}
	var changes []config.Change
	if c.base, changes, err = config.Migrate(c.base, c.from); err != nil {
		return err
	}
	for _, change := range changes {
		fmt.Fprintf(io.Err, "slipway: %s is of an older version: %s\n", c.from, change)
	}
	c.own = !recorded && there != "" && same(c.from, there)
	c.brought = c.file != "" && !c.own
	schema := answers.NewSchema(c.describe(), nil)
	if recorded {
		if c.base, err = answers.Readable(schema, c.base); err != nil {
			return err
		}
	}
	d, err := answers.NewDraft(schema, c.base)
	if err != nil {
		return unreadable("read the configuration to begin with", "correct the file", err)
	}
	c.release = d.Get("platform.release")
	if recorded && c.release != c.kept && (packed || !filepath.IsLocal(c.release)) {
		c.sent = c.release
	}
	return nil
}

// unreadable keeps coded errors.
func unreadable(op, fix string, err error) error {
	if _, coded := errors.AsType[*fault.Fault](err); coded {
		return err
	}
	return &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: op, Err: err, Fix: fix}
}

func (c *Command) invalid(problems []config.Problem) error {
	return &fault.Fault{Code: config.CodeInvalid, Class: fault.Usage, Op: "configure", Err: &config.Invalid{Problems: problems},
		Fix: "give or correct what is listed, then run the same command again; slipway configure on a terminal asks for it"}
}
