package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/config/form"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// configuring is `slipway configure`: a configuration is made of an earlier one, of
// answers that were given, and of those that a person gives.
type configuring struct {
	t          target // checks what is made; its config is the earlier one
	deployment string // name that the file is kept under
	sets       []string
	fragment   string // file with answers
	file       string // an earlier configuration or run
	output     string
	quiet      bool // asks nothing
	plain      bool // asks in lines
	force      bool
	next       string // what is told to do then, in place of the usual

	base     []byte // the earlier configuration, of the current version; may be empty
	from     string // where it is from
	asks     bool   // a person answers
	strange  bool   // the shell has variables of another deployment
	own      bool   // it is the one that is there already where the file is written
	release  string // the platform release in it
	complete bool   // what was given is in the draft, also what only the platform knows
}

const configureLong = `It asks in a form on a terminal, and begins with what it finds, the first that says
something: --set, --answers, variables (SLIPWAY_CONFIG_GLOBAL_NAME for global.name,
and so on; slipway env prints them), --file or what is there already, variables of
other programs such as AWS_REGION, defaults. What --set, --answers and the variables
say is not asked. Without a terminal, or with --answers, nothing is asked at all:
what nobody answers for and has no sensible default is named, exit code 2.

Without --output the file is kept under the deployment's name, for --deployment NAME
and slipway use NAME. No secret belongs into it, only where it is.`

func configureCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	c := &configuring{t: target{flags: set}}
	set.StringVar(&c.deployment, "deployment", "", "name of the deployment; what is kept under it is where the form begins")
	set.StringArrayVar(&c.sets, "set", nil, "an answer, field=value: --set global.name=staging; lists with commas; @FILE is what a file holds; an empty answer takes the field away, and its default applies; may be repeated")
	set.StringVar(&c.fragment, "answers", "", "file with answers, YAML as in a configuration, which need not be complete; nothing is asked then; - is standard input")
	set.StringVarP(&c.file, "file", "f", "", "where to begin: a configuration, or a run that slipway report has written (its directory, or a .tar.gz of it)")
	set.StringVarP(&c.output, "output", "o", "", "file to write in place of keeping it by name; - is standard output")
	imageFlags(set, &c.t)
	set.StringVar(&c.t.platform, "platform", "", "directory of the platform release, where platform.release cannot be read")
	set.BoolVar(&c.quiet, "non-interactive", false, "ask nothing")
	set.BoolVar(&c.plain, "accessible", os.Getenv("ACCESSIBLE") != "", "ask in plain lines, for screen readers (env ACCESSIBLE)")
	set.BoolVar(&c.force, "force", false, "without a form: replace a file that is there, where that is not what was begun with")
	set.StringVar(&c.next, "next", "", "what to do then")
	_ = set.MarkHidden("next")
	return func(ctx context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		return c.run(ctx, io)
	}
}

// run does it, with the hooks around it: those before of the configuration that there
// is, those after of the one that was written.
func (c *configuring) run(ctx context.Context, io streams) error {
	if err := c.begin(io); err != nil {
		return err
	}
	around := c.around(io)
	if err := around.before(ctx); err != nil {
		return err
	}
	text, err := c.make(ctx, io)
	switch {
	case err != nil:
		return around.after(ctx, around.old, err)
	case text == nil: // the person wants none
		gaveUp := &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "configure", Err: errors.New("nothing was to be written"), Fix: "run slipway configure again"}
		err := around.after(ctx, around.old, gaveUp)
		if _, hooks := errors.AsType[joined](err); hooks {
			return err
		}
		return nil
	}
	cfg, err := c.t.parse(text, nil)
	if err != nil {
		return err
	}
	tell, err := c.write(io, cfg, text)
	if err != nil {
		return around.after(ctx, around.old, err)
	}
	around.on.File = text
	if err := around.after(ctx, cfg, nil); err != nil {
		return err
	}
	_, err = fmt.Fprint(io.out, tell)
	return err
}

// joined is the error of errors.Join: that of hooks besides the outcome.
type joined interface {
	error
	Unwrap() []error
}

// make makes the file: of answers that a person gives, or of those that were given. No
// file and no error: the person wants none.
func (c *configuring) make(ctx context.Context, io streams) ([]byte, error) {
	asker := c.asker(io)
	if asker == nil {
		return c.given(io)
	}
	c.asks = true
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-io.stop:
			cancel(form.ErrAborted)
		case <-ctx.Done():
		}
	}()
	text, err := c.ask(ctx, io, asker)
	if errors.Is(err, form.ErrAborted) {
		return nil, &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "configure", Err: err, Fix: "nothing was written; run slipway configure again"}
	}
	return text, err
}

// asker is who asks; nil when nobody does.
func (c *configuring) asker(io streams) form.Asker {
	in, isFile := io.in.(*os.File)
	switch {
	case c.quiet, c.fragment != "", io.terminal == nil, os.Getenv(moduleEnv) != "":
		return nil
	case c.plain:
		return form.NewPlain(io.in, io.terminal)
	case os.Getenv("CI") != "" && os.Getenv("CI") != "false": // whose terminals nobody sits at
		return nil
	case !isFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(io.terminal.Fd())):
		return nil
	case os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "":
		return form.NewPlain(io.in, io.terminal)
	}
	return form.Form{In: in, Out: io.terminal}
}

// begin reads the earlier configuration: that of --file, else what is there already.
func (c *configuring) begin(io streams) error {
	switch other := os.Getenv(envDeployment); {
	case c.deployment == "" && c.t.flags.Changed("deployment"):
		return errUsage{errors.New("--deployment is empty; give a name")}
	case other == "" || c.output != "" || os.Getenv(moduleEnv) != "":
	case c.deployment == "":
		c.deployment = other
		fmt.Fprintf(io.err, "slipway: deployment %s (chosen with %s; --deployment chooses another)\n", other, envDeployment)
	}
	if other := os.Getenv(envDeployment); other != "" && other != c.deployment {
		c.strange = true
		fmt.Fprintf(io.err, "slipway: the variables of deployment %s (%s) are no answers here\n", other, envDeployment)
	}
	if c.deployment != "" && c.output != "" {
		return errUsage{errors.New("give either --deployment, under which the file is kept, or --output")}
	}
	for _, set := range c.sets {
		if name, ok := strings.CutPrefix(set, "global.name="); ok && c.deployment != "" && name != c.deployment {
			return errUsage{fmt.Errorf("--deployment is %s and --set says global.name is %s; give one of them", c.deployment, name)}
		}
	}
	if c.file == "-" && c.fragment == "-" {
		return errUsage{errors.New("give standard input to one of --file and --answers")}
	}
	there, err := c.destination(c.deployment)
	if err != nil {
		return err
	}
	recorded := false
	switch {
	case c.file != "":
		c.from = c.file
		c.base, recorded, err = earlier(c.file, io)
	case there != "":
		c.from = there
		if c.base, err = os.ReadFile(there); errors.Is(err, fs.ErrNotExist) {
			c.from, err = "", nil
		}
	}
	if err != nil {
		return unreadable("read the configuration to begin with", "give --file the path of a configuration, or of a run that slipway report has written", err)
	}
	var changes []migrate.Change
	if c.base, changes, err = config.Migrate(c.base, c.from); err != nil {
		return err
	}
	for _, change := range changes {
		fmt.Fprintf(io.err, "slipway: %s is of an older version: %s\n", c.from, change)
	}
	c.own = there != "" && same(c.from, there)
	schema := answers.NewSchema(describe(), nil)
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
	return nil
}

// unreadable is a file that cannot be read; an interruption stays one.
func unreadable(op, fix string, err error) error {
	if _, coded := errors.AsType[*fault.Fault](err); coded {
		return err
	}
	return &fault.Fault{Code: codeUnreadable, Class: fault.Usage, Op: op, Err: err, Fix: fix}
}

// destination is the file that is written for a deployment; empty when that is
// standard output, or not known yet.
func (c *configuring) destination(name string) (string, error) {
	switch c.output {
	case "-":
		return "", nil
	case "":
	default:
		if info, err := os.Stat(filepath.Dir(c.output)); err != nil || !info.IsDir() {
			return "", errUsage{fmt.Errorf("--output is %s; give a file in a folder that exists", c.output)}
		}
		return c.output, nil
	}
	folder, err := deployments.Default()
	if err != nil {
		return "", err
	}
	if folder == "" {
		return "", errUsage{errors.New("there is no folder to keep it in: set HOME or " + deployments.EnvFolder + ", or give --output FILE")}
	}
	if name == "" {
		return "", nil
	}
	file := folder.File(name)
	if file == "" {
		return "", errUsage{fmt.Errorf("--deployment is %q; give 1 to 15 lower-case letters, digits and hyphens, starting with a letter", name)}
	}
	return file, nil
}

// write puts the file where it belongs, and returns what to tell about it.
func (c *configuring) write(io streams, cfg *config.Config, text []byte) (tell string, err error) {
	name := cfg.Global.Name
	if c.output == "-" {
		return string(text), nil
	}
	file, err := c.destination(name)
	if err != nil {
		return "", err
	}
	if before, err := readIfThere(file); err == nil && before != nil && !bytes.Equal(before, text) && !c.asks {
		c.changes(io.err, file, before, text)
	}
	flag, current := "--deployment "+name, ""
	if c.output == "" {
		current, err = c.keep(io, name, text)
	} else {
		flag = "--config " + quoted(c.output)
		err = overwrite(file, text)
	}
	if err != nil {
		fmt.Fprintf(io.err, "\n%s\n\nslipway: this could not be written\n", text)
		return "", unwritten(file, err)
	}
	next := "slipway install " + flag
	if _, err := providerRegistry().Get(cfg.Provider); err != nil {
		next = fmt.Sprintf("slipway config explain %s   (nothing can be installed to %s yet)", flag, cfg.Provider)
	}
	if c.next != "" {
		next = c.next
	}
	return fmt.Sprintf("The configuration of deployment %s is %s\n%s\nNext:\n  %s\n", name, file, current, next), nil
}

// changes shows what becomes of a file. What is refused in it and may be a secret is
// not shown.
func (c *configuring) changes(w io.Writer, file string, before, after []byte) {
	if d, err := answers.NewDraft(answers.NewSchema(describe(), nil), before); err == nil {
		if _, err := c.hide(d); err == nil {
			if hidden, err := d.Bytes(); err == nil {
				before = hidden
			}
		}
	}
	fmt.Fprintf(w, "\nWhat it changes in %s:\n", file)
	if err := difference(w, file, before, after); err != nil {
		fmt.Fprintf(w, "  (%s)\n", err) // such as a file that is not YAML
	}
}

// codeUnwritten: the configuration that was made cannot be written to its place. It was
// shown, so that nothing is lost.
const codeUnwritten fault.Code = "CFG-014"

func unwritten(file string, err error) error {
	return &fault.Fault{Code: codeUnwritten, Class: fault.Usage, Op: "write " + file, Err: err,
		Fix: "give another place, --output FILE, or yourself access to that one"}
}

// overwrite writes a file, or the one that a link leads to, which keeps its mode.
func overwrite(file string, text []byte) error {
	mode := os.FileMode(0o600)
	if target, err := filepath.EvalSymlinks(file); err == nil {
		info, err := os.Stat(target)
		if err != nil {
			return err
		}
		file, mode = target, info.Mode().Perm()
	}
	return atomicfile.Write(file, text, mode)
}

// keep keeps the file by name; the first one that is kept is the current one, which
// current tells.
func (c *configuring) keep(io streams, name string, text []byte) (current string, err error) {
	folder, err := deployments.Default()
	if err != nil {
		return "", err
	}
	if err := folder.Write(name, text); err != nil {
		return "", err
	}
	names, err := folder.Names()
	if err == nil && len(names) == 1 {
		err = folder.Use(name)
		current = "It is the current one: commands that name no deployment work on it (slipway use).\n"
	}
	if err != nil { // it is kept all the same
		fmt.Fprintf(io.err, "slipway: choose it as the current deployment: %v\n", err)
		return "", nil
	}
	return current, nil
}
