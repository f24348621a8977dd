package configure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
)

// ask asks the user, and returns the file to write; nil: none.
func (c *Command) ask(ctx context.Context, io console.Streams, f *answers.Form) ([]byte, error) {
	s, err := c.start(answers.NewSchema(c.describe(), nil), nil, nil)
	if err != nil {
		return nil, err
	}
	if len(s.problems) > 0 {
		return nil, c.invalid(s.problems)
	}
	for {
		if err := c.interview(ctx, io, f, s); err != nil {
			return nil, err
		}
		text, err := c.text(s.Draft)
		if err != nil {
			return nil, err
		}
		what, err := c.review(ctx, io, f, text)
		switch {
		case err != nil:
			return nil, err
		case what == write:
			return text, nil
		case what == quit:
			fmt.Fprintln(io.Screen(), "Nothing was written.")
			return nil, nil
		}
	}
}

// interview asks all open questions once.
func (c *Command) interview(ctx context.Context, io console.Streams, f *answers.Form, s *initialDraft) error {
	if err := c.reopenInvalid(s); err != nil {
		return err
	}
	first := c.first(s.Schema)
	if err := c.page(ctx, f, s, first, 0, c.later(s), false); err != nil {
		return err
	}
	schema, components, err := c.platform(s.Draft)
	if err != nil {
		return err
	}
	s.Platform(schema, components)
	if !c.complete { // answers for the platform fit only now
		full, err := c.start(schema, components, nil)
		if err != nil {
			return err
		}
		full.print(io.Screen())
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
	if err := c.reopenInvalid(s); err != nil {
		return err
	}
	before := countPages(s.Pending(first))
	err = c.page(ctx, f, s, schema.Rest(s.Draft.Get("provider"), components), before, 0, before > 0)
	if errors.Is(err, answers.ErrBack) {
		return c.interview(ctx, io, f, s)
	}
	return err
}

// leave removes answers for a provider that was chosen before. Values from the file or flags stay.
func (c *Command) leave(s *initialDraft) error {
	base, err := answers.NewDraft(s.Schema, c.base)
	if err != nil {
		return err
	}
	for _, name := range c.source.Providers.Names() {
		given := slices.ContainsFunc(s.given, func(g answers.Given) bool { return strings.HasPrefix(g.Field.Path, name+".") })
		if name != s.Draft.Get("provider") && !base.Has(name) && !given {
			s.Draft.Remove(name)
		}
	}
	return nil
}

// reopenInvalid makes the form ask again for invalid values, without showing possible secrets.
func (c *Command) reopenInvalid(s *initialDraft) error {
	problems, err := c.hide(s.Draft)
	for _, p := range problems {
		delete(s.Given, p.Field)
	}
	return err
}

// hide removes invalid values that may be secrets from a draft, and returns all its problems.
func (c *Command) hide(d *answers.Draft) ([]config.Problem, error) {
	text, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	schema := answers.NewSchema(c.describe(), nil)
	problems := c.check(text)
	for _, p := range problems {
		if f, wrong := schema.Field(p.Field); wrong == nil && f.Secret(d.Get(p.Field)) {
			d.Remove(p.Field)
		}
	}
	return problems, nil
}

// first returns the pages that the others depend on. It marks providers that cannot install yet.
func (c *Command) first(schema *answers.Schema) []answers.Page {
	pages := schema.First()
	for _, p := range pages {
		for _, q := range p.Questions {
			if q.Path != "provider" {
				continue
			}
			for i, choice := range q.Choices {
				if _, err := c.source.Providers.Get(choice.Answer); err != nil {
					q.Choices[i].Label += " (nothing can be installed there yet)"
				}
			}
		}
	}
	return pages
}

// later counts the pages after the first ones, as far as known.
func (c *Command) later(s *initialDraft) int {
	schema, components, err := c.platform(s.Draft)
	if err != nil { // the first page asks for another release
		schema = s.Schema
	}
	return countPages(s.Pending(schema.Rest(schema.Provider(s.Draft), components)))
}

// countPages counts pages with a number: those on demand have none.
func countPages(pages []answers.Page) int {
	n := 0
	for _, p := range pages {
		if p.Extra == "" {
			n++
		}
	}
	return n
}

// page asks the open questions of pages. before and after count the other pages, for page numbers.
func (c *Command) page(ctx context.Context, f *answers.Form, s *initialDraft, pages []answers.Page, before, after int, back bool) error {
	pages = s.Pending(pages)
	if len(pages) == 0 {
		return nil
	}
	total := before + countPages(pages) + after
	for i := range pages {
		if pages[i].Extra == "" {
			before++
			pages[i].Title += fmt.Sprintf(" (page %d of %d)", before, total)
		}
	}
	was := s.Before(pages)
	all, err := f.Ask(ctx, s.Interview, pages, was, back)
	if err != nil && !errors.Is(err, answers.ErrBack) {
		return err
	}
	if err != nil { // keep the answers for the next time, if they are valid
		if draft, problems := s.With(s.Changed(pages, was, all), all); len(problems) == 0 {
			s.Draft = draft
		}
		return err
	}
	draft, problems := s.With(pages, all)
	if len(problems) > 0 { // the form rejects such answers
		return c.invalid(problems)
	}
	s.Draft = draft
	return nil
}

// The answers to review.
const (
	write  = "write"
	change = "change"
	quit   = "quit"
)

// review shows the file, its changes and its problems, and asks what to do.
func (c *Command) review(ctx context.Context, io console.Streams, f *answers.Form, text []byte) (what string, err error) {
	name := ""
	if cfg, err := c.source.Parse(text, nil); err == nil {
		name = cfg.Global.Name
	}
	file, err := c.destination(name)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(io.Screen(), "\n%s\n\n", strings.TrimRight(string(text), "\n"))
	there, err := readIfThere(file)
	if err != nil { // write reports it again
		fmt.Fprintf(io.Screen(), "%s\n", err)
	}
	question := "Write it to standard output?"
	switch {
	case file == "":
	case there == nil:
		question = "Write it to " + file + "?"
	case bytes.Equal(there, text):
		question = file + " is the same already. Write it again?"
	default:
		question = "Replace " + file + " with it?"
		c.changes(io.Screen(), file, there, text)
	}
	options := []answers.Option{{Answer: write, Label: "Yes"}, {Answer: change, Label: "No, change answers"}, {Answer: quit, Label: "No, write nothing"}}
	if problems := c.check(text); len(problems) > 0 {
		question = "It cannot be written as it is."
		fmt.Fprintf(io.Screen(), "\n%s\n", (&config.Invalid{Problems: problems}).Error())
		options = options[1:]
	}
	return f.Choose(ctx, question, options)
}
