package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/huh"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// ErrAborted means that the user does not want to continue.
var ErrAborted = errors.New("interrupted")

// ErrBack means that the user wants to go back to earlier pages.
var ErrBack = errors.New("back")

// Form prompts a user on an interactive terminal. There, Ctrl-C is an ordinary key, unless the form is
// accessible.
type Form struct {
	In         io.Reader
	Out        io.Writer
	Accessible bool // for screen readers: one question after another, in plain lines
}

// Ask asks the questions of pages and returns all answers. before are the initial answers. With back, a
// form that is not accessible lets the user go back to earlier pages: it then returns the answers with
// ErrBack.
func (f Form) Ask(ctx context.Context, v *Interview, pages []Page, before map[string]string, back bool) (map[string]string, error) {
	s := sheet{}
	for path, answer := range before {
		s[path] = &answer
	}
	field := func(q Question) huh.Field {
		return s.field(q, before[q.Path], f.Accessible, func() error {
			if p := v.Try(pages, s.answers(), q); p != nil {
				return errors.New(redact.OneLine(p.Reason()))
			}
			return nil
		})
	}
	if f.Accessible {
		err := f.inLines(ctx, func(in io.Reader, out io.Writer) {
			if !back {
				fmt.Fprint(out, "An empty line accepts the value in [ ]; - clears it; Ctrl-C exits without writing anything.\n")
			}
			for _, p := range pages {
				if p.Asked(s.answers()) {
					askPage(in, out, p, field)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		return s.answers(), nil
	}
	left := false
	var groups []*huh.Group
	for i, p := range pages {
		var fields []huh.Field
		for _, q := range p.Questions {
			fields = append(fields, field(q))
		}
		if l, ok := fields[0].(*line); ok && i == 0 && back {
			l.back = func() tea.Cmd {
				left = true
				return tea.Quit
			}
		}
		groups = append(groups, huh.NewGroup(fields...).Title(redact.OneLine(p.Title)).Description(below(redact.Printable(p.Help))).
			WithHideFunc(func() bool { return !p.Asked(s.answers()) }))
	}
	if err := f.run(ctx, huh.NewForm(groups...), &left); err != nil {
		return nil, err
	}
	if left {
		return s.answers(), ErrBack
	}
	return s.answers(), nil
}

// Choose asks for one of the options.
func (f Form) Choose(ctx context.Context, title string, options []Option) (string, error) {
	choice := options[0].Answer
	field := huh.NewSelect[string]().Title(redact.OneLine(title)).Options(huhOptions(options)...).Value(&choice)
	if f.Accessible {
		field.Title(withDefault(redact.OneLine(title), options[0].Label))
		if err := f.inLines(ctx, func(in io.Reader, out io.Writer) { _ = field.RunAccessible(out, in) }); err != nil {
			return "", err
		}
		return choice, nil
	}
	err := f.run(ctx, huh.NewForm(huh.NewGroup(field)), new(bool))
	return choice, err
}

// run shows a form until the user completes or leaves it.
func (f Form) run(ctx context.Context, form *huh.Form, left *bool) error {
	// The caller handles signals; they end ctx.
	err := form.WithTheme(huh.ThemeBase16()).WithLayout(compact{huh.LayoutDefault, left}).
		WithProgramOptions(tea.WithInput(f.In), tea.WithOutput(f.Out), tea.WithoutSignalHandler()).RunWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, huh.ErrUserAborted):
		return ErrAborted
	case err != nil:
		return fmt.Errorf("show the form: %w", err)
	}
	return nil
}

// sheet holds the answers of a form while the user fills it in.
type sheet map[string]*string

func (s sheet) answers() map[string]string {
	out := map[string]string{}
	for path, text := range s {
		out[path] = *text
	}
	return out
}

// several is an answer as a list.
type several struct{ text *string }

func (s several) Get() []string {
	if *s.text == "" {
		return nil
	}
	return strings.Split(*s.text, ",")
}

func (s several) Set(list []string) { *s.text = strings.Join(list, ",") }

func (s sheet) field(q Question, before string, accessible bool, try func() error) huh.Field {
	title, help := redact.OneLine(q.Title()), redact.Printable(q.Help)
	switch q.Kind {
	case Choice:
		text := &before
		s[q.Path] = text
		field := huh.NewSelect[string]().Title(title).Description(help).Options(huhOptions(q.Choices)...).Value(text).
			Validate(func(choice string) error {
				*text = choice
				return try()
			})
		if accessible {
			field.Title(withDefault(title, *text))
		}
		return field
	case Several:
		s[q.Path] = &before
		return huh.NewMultiSelect[string]().Title(title).Description(help).Options(huhOptions(q.Choices)...).Accessor(several{&before}).
			Validate(func([]string) error { return try() })
	}
	before = redact.Printable(before) // what is accepted is what is seen
	text := before
	s[q.Path] = &text
	if accessible {
		answer := spoken{&text}
		return huh.NewInput().Title(withDefault(title, before)).Accessor(answer).Validate(func(line string) error {
			answer.Set(cmp.Or(strings.TrimSpace(line), before))
			return try()
		})
	}
	input := huh.NewInput().Title(title).Description(describe(q)).Placeholder(placeholder(q)).Value(&text).
		Validate(func(string) error { return try() })
	if q.Kind == Line {
		var examples []string
		for _, e := range q.Examples {
			examples = append(examples, redact.OneLine(e))
		}
		input.Suggestions(examples)
	}
	return &line{Input: input, try: try}
}

// line is an input that shows problems during typing.
type line struct {
	*huh.Input
	try  func() error
	err  error
	back func() tea.Cmd // leaves the form for earlier pages; nil: the form itself goes back
}

// KeyBinds returns the keys that the form shows.
func (l *line) KeyBinds() []key.Binding {
	keys := l.Input.KeyBinds()
	if l.back != nil {
		keys = append([]key.Binding{key.NewBinding(key.WithKeys("shift+tab"), key.WithHelp("shift+tab", "back"))}, keys...)
	}
	return keys
}

// Update validates the text after each key.
func (l *line) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := l.Input.Update(msg)
	if pressed, ok := msg.(tea.KeyMsg); ok {
		l.err = nil // a problem must not prevent going back
		switch {
		case pressed.Type != tea.KeyShiftTab:
			l.err = l.try()
		case l.back != nil:
			return l, l.back()
		}
	}
	return l, cmd
}

// Error returns the problem with the text.
func (l *line) Error() error { return l.err }

// compact removes the empty lines with which huh pads all pages to the same height, and
// the contents of a form that the user has left.
type compact struct {
	huh.Layout
	left *bool
}

// View renders the page.
func (c compact) View(f *huh.Form) string {
	if *c.left {
		return ""
	}
	var out []string
	empty := false
	for l := range strings.SplitSeq(c.Layout.View(f), "\n") {
		blank := strings.TrimSpace(l) == ""
		if !blank || !empty {
			out = append(out, strings.TrimRight(l, " "))
		}
		empty = blank
	}
	return strings.Join(out, "\n")
}

func huhOptions(options []Option) []huh.Option[string] {
	var out []huh.Option[string]
	for _, o := range options {
		out = append(out, huh.NewOption(redact.OneLine(o.Label), o.Answer))
	}
	return out
}

// below indents the further lines of a text: they are no questions.
func below(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

// describe returns the help for a question with a one-line answer.
func describe(q Question) string {
	help := redact.Printable(q.Help)
	switch {
	case q.Kind == File:
		return help + " Give the path of a file that holds it; without one, what there is stays."
	case q.Type == List:
		return help + " Separated by commas."
	case q.Type == Mapping:
		return help + " NAME=value, separated by commas."
	}
	return help
}

// placeholder returns what an empty line shows.
func placeholder(q Question) string {
	switch {
	case q.Kind == File:
		return "path of a file"
	case q.Default != "":
		return "default: " + redact.OneLine(q.Default)
	case q.Example != "":
		return "such as " + redact.OneLine(q.Example)
	}
	return ""
}
