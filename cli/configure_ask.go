package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/invopop/jsonschema"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/form"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/fault"
)

// describe is the schema of configurations.
func describe() *jsonschema.Schema { return config.Describe(providerRegistry().Settings()) }

// ask has a person answer, and returns the file that they want written; nil when
// they want none.
func (c *configuring) ask(ctx context.Context, io streams, asker form.Asker) ([]byte, error) {
	s, err := c.start(answers.NewSchema(describe(), nil), nil, nil)
	if err != nil {
		return nil, err
	}
	s.suggest("proxy")
	if len(s.problems) > 0 {
		return nil, c.invalid(s.problems)
	}
	for {
		if err := c.interview(ctx, io, asker, s); err != nil {
			return nil, err
		}
		text, err := c.text(s.Draft)
		if err != nil {
			return nil, err
		}
		text, what, err := c.review(ctx, io, asker, text)
		switch {
		case err != nil:
			return nil, err
		case what == write:
			return text, nil
		case what == quit:
			fmt.Fprintln(io.terminal, "Nothing was written.")
			return nil, nil
		}
		if s.Draft, err = answers.NewDraft(s.Schema, text); err != nil {
			return nil, err
		}
	}
}

// interview asks all questions once.
func (c *configuring) interview(ctx context.Context, io streams, asker form.Asker, s *started) error {
	if err := c.askWrong(s); err != nil {
		return err
	}
	first := s.Schema.First()
	if err := c.page(ctx, asker, s, first, false); err != nil {
		return err
	}
	schema, components, err := c.platform(s.Draft)
	if err != nil {
		return err
	}
	s.Platform(schema, components)
	if !c.complete { // what was given can only be taken in whole once the schema is
		full, err := c.start(schema, components, nil)
		if err != nil {
			return err
		}
		full.tell(io.terminal)
		if len(full.problems) > 0 {
			return c.invalid(full.problems)
		}
		own := func(g answers.Given) bool {
			return strings.HasPrefix(g.Field.Path, "platform.settings.") || strings.HasPrefix(g.Field.Path, answers.Components+".")
		}
		s.take(slices.DeleteFunc(full.given, func(g answers.Given) bool { return !own(g) }))
		c.complete = true
	}
	if err := c.leave(s); err != nil {
		return err
	}
	s.suggest(s.Draft.Get("provider"))
	if err := c.askWrong(s); err != nil {
		return err
	}
	err = c.page(ctx, asker, s, schema.Rest(s.Draft.Get("provider"), components), len(s.Ask(first)) > 0)
	if errors.Is(err, form.ErrBack) {
		return c.interview(ctx, io, asker, s)
	}
	return err
}

// leave takes away what was answered for another provider, before that was changed.
// What there was before, and what was given, stays.
func (c *configuring) leave(s *started) error {
	base, err := answers.NewDraft(s.Schema, c.base)
	if err != nil {
		return err
	}
	for _, name := range providerRegistry().Names() {
		given := slices.ContainsFunc(s.given, func(g answers.Given) bool { return strings.HasPrefix(g.Field.Path, name+".") })
		if name != s.Draft.Get("provider") && !base.Has(name) && !given {
			s.Draft.Remove(name)
		}
	}
	return nil
}

// askWrong has those fields asked all the same whose answers were given and are wrong.
// What may be a secret is not shown again.
func (c *configuring) askWrong(s *started) error {
	problems, err := c.hide(s.Draft)
	for _, p := range problems {
		delete(s.Given, p.Field)
	}
	return err
}

// hide takes away what is refused in a draft and may be a secret, and returns all that
// is wrong with it.
func (c *configuring) hide(d *answers.Draft) ([]config.Problem, error) {
	text, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	schema := answers.NewSchema(describe(), nil)
	problems := c.check(text)
	for _, p := range problems {
		if f, wrong := schema.Field(p.Field); wrong == nil && f.Secret(d.Get(p.Field)) {
			d.Remove(p.Field)
		}
	}
	return problems, nil
}

// page asks the questions of pages that are not answered yet.
func (c *configuring) page(ctx context.Context, asker form.Asker, s *started, pages []answers.Page, back bool) error {
	pages = s.Ask(pages)
	if len(pages) == 0 {
		return nil
	}
	before := s.Before(pages)
	all, err := asker.Ask(ctx, s.Interview, pages, before, back)
	if err != nil && !errors.Is(err, form.ErrBack) {
		return err
	}
	if err != nil { // what was answered is where the next time begins, if it can be
		if draft, problems := s.With(s.Changed(pages, before, all), all); len(problems) == 0 {
			s.Draft = draft
		}
		return err
	}
	draft, problems := s.With(pages, all)
	if len(problems) > 0 { // the form takes no such answer
		return c.invalid(problems)
	}
	s.Draft = draft
	return nil
}

// What a person wants done with a file that is complete.
const (
	write  = "write"
	edit   = "edit"
	change = "change"
	quit   = "quit"
)

// review shows the file, what it changes and what is wrong with it, and asks what to
// do, until that is neither a look nor an edit.
func (c *configuring) review(ctx context.Context, io streams, asker form.Asker, text []byte) ([]byte, string, error) {
	for {
		problems := c.check(text)
		name := ""
		if cfg, err := c.t.parse(text, nil); err == nil {
			name = cfg.Global.Name
		}
		file, err := c.destination(name)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(io.terminal, "\n%s\n\n", strings.TrimRight(string(text), "\n"))
		there, err := readIfThere(file)
		if err != nil { // which the one who writes it says again
			fmt.Fprintf(io.terminal, "%s\n", err)
		}
		question := "Write it to standard output?"
		switch {
		case file == "":
		case there == nil:
			question = "Write it to " + file + "?"
		case bytes.Equal(there, text):
			question = file + " is the same already. Write it again?"
		default:
			question = "Replace " + file + " by it?"
			c.changes(io.terminal, file, there, text)
		}
		options := []answers.Option{{Answer: write, Label: "Yes"}, {Answer: edit, Label: "Edit it first"}, {Answer: change, Label: "No, change answers"}, {Answer: quit, Label: "No, write nothing"}}
		if editor() == "" {
			options = slices.Delete(options, 1, 2)
		}
		if len(problems) > 0 {
			question = "It cannot be written as it is."
			fmt.Fprintf(io.terminal, "\n%s\n", (&config.Invalid{Problems: problems}).Error())
			options = options[1:]
		}
		what, err := asker.Choose(ctx, question, options)
		if err != nil || what == write || what == quit {
			return text, what, err
		}
		if what == change {
			if _, err := answers.NewDraft(nil, text); err == nil {
				return text, what, nil
			}
			fmt.Fprintln(io.terminal, "It is not YAML as it is: edit it first.")
			continue
		}
		edited, err := c.edit(ctx, io, text)
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case err != nil:
			fmt.Fprintf(io.terminal, "The editor: %s\n", err)
		default:
			text = edited
		}
	}
}

// readIfThere is what is in a file; nil if it is not there.
func readIfThere(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, unwritten(file, err)
	}
	return text, nil
}

// edit opens the file in the user's editor.
func (c *configuring) edit(ctx context.Context, io streams, text []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "slipway-configure-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "slipway.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor()+` "$1"`, "sh", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.terminal, io.terminal
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w; nothing of it was taken", editor(), err)
	}
	return os.ReadFile(file)
}

// editor is the command of the user's editor, or of one that is there; empty when none
// is.
func editor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if command := os.Getenv(name); command != "" {
			return command
		}
	}
	for _, command := range []string{"editor", "vi", "nano"} {
		if _, err := exec.LookPath(command); err == nil {
			return command
		}
	}
	return ""
}

// check says what is wrong with a file, also what only the platform release knows.
func (c *configuring) check(text []byte) []config.Problem {
	ignore := func([]migrate.Change) {}
	cfg, err := c.t.parse(text, ignore)
	problems := config.Problems(err)
	if err != nil && len(problems) == 0 {
		problems = []config.Problem{{Got: err.Error(), Want: "a configuration of version " + config.APIVersion}}
	}
	if cfg == nil { // what is said of the platform can be checked all the same
		if cfg = c.platformOnly(text); cfg == nil {
			return problems
		}
	}
	release, err := c.releaseOf(cfg)
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return append(problems, config.Problem{Field: "platform.release", Got: f.Err.Error(), Want: "one that is there: " + f.Fix})
	}
	if err != nil {
		return append(problems, config.Problem{Field: "platform.release", Got: err.Error(), Want: "a platform release"})
	}
	if _, err := release.Off(cfg.Choices()); err != nil {
		problems = append(problems, config.Problem{Field: "platform.components", Got: err.Error(), Want: "components of this platform release"})
	} else if err := release.Overrides(cfg.Overrides()); err != nil {
		problems = append(problems, config.Problem{Field: "platform.components", Got: err.Error(), Want: "values for charts of this platform release"})
	}
	own, err := release.SettingsProblems(cfg.Platform.Settings)
	if err != nil {
		own = []config.Problem{{Field: "platform.settings", Got: err.Error(), Want: "none"}}
	}
	return append(problems, own...)
}

// platformOnly is a configuration with what a file says of the platform, and nothing
// else; nil if that is wrong.
func (c *configuring) platformOnly(text []byte) *config.Config {
	d, err := answers.NewDraft(nil, text)
	if err != nil {
		return nil
	}
	if text, err = d.Only("apiVersion", "platform").Bytes(); err != nil {
		return nil
	}
	cfg, err := c.t.parse(text, func([]migrate.Change) {})
	if err != nil {
		return nil
	}
	return cfg
}
