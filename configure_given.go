package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// started is a draft of what was found, with the fields that need not be asked.
type started struct {
	*answers.Interview
	problems []config.Problem // with the answers that were given
	answered []string         // variables that are answers
	unknown  []string         // variables that look as if they were
}

// tell says which variables are answers: they may be left from something else.
func (s *started) tell(w io.Writer) {
	if len(s.answered) > 0 {
		fmt.Fprintf(w, "slipway: these variables are answers: %s\n", strings.Join(s.answered, ", "))
	}
	for _, name := range s.unknown {
		fmt.Fprintf(w, "slipway: the variable %s is for no field of this configuration\n", name)
	}
}

// start makes the draft of the earlier configuration and of the answers that were
// given, for a platform release.
func (c *configuring) start(schema *answers.Schema, components []answers.Component, fragment []byte, usual ...string) (*started, error) {
	draft, err := answers.NewDraft(schema, c.base)
	if err != nil {
		return nil, err
	}
	s := &started{Interview: &answers.Interview{Schema: schema, Draft: draft, Components: components, Given: map[string]bool{}, Check: c.check}}
	var names []string
	for _, component := range components {
		names = append(names, component.Name)
	}
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, deployments.EnvFolder+"=") })
	if err := c.absolute(draft, filepath.Dir(c.from)); err != nil {
		return nil, err
	}
	given, unknown := schema.Environment(environ, names)
	s.unknown = unknown
	for _, g := range given {
		s.answered = append(s.answered, g.By)
	}
	s.take(given)
	if fragment != nil {
		more, err := answers.NewDraft(schema, fragment)
		if err != nil {
			return nil, &fault.Fault{Code: codeUnreadable, Class: fault.Usage, Op: "read the answers", Err: err, Fix: "give --answers a file with YAML as in a configuration"}
		}
		draft.Merge(more)
	}
	given, problems := schema.Assignments(c.sets)
	s.problems = append(s.problems, problems...)
	if c.deployment != "" {
		if f, wrong := schema.Field("global.name"); wrong == nil {
			given = append(given, answers.Given{Field: f, Answer: c.deployment, By: "--deployment"})
		}
	}
	s.take(given)
	for _, section := range usual {
		for _, g := range schema.Usual(section, os.LookupEnv) {
			if !draft.Has(g.Field.Path) {
				s.problems = append(s.problems, wrong(draft.Set(g.Field, g.Answer))...)
			}
		}
	}
	return s, nil
}

// absolute makes a path of the platform release that is relative to dir one that
// works from anywhere, where dir is not the working directory.
func (c *configuring) absolute(d *answers.Draft, dir string) error {
	path := d.Get("platform.release")
	if !strings.Contains(path, "/") || filepath.IsAbs(path) || document.Refers(path) {
		return nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", dir, err)
	}
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	if abs != here {
		d.SetText("platform.release", filepath.Join(abs, path))
	}
	return nil
}

// text is the file that a draft makes, for the place where it is written: a relative
// path in a file is relative to the file.
func (c *configuring) text(d *answers.Draft) ([]byte, error) {
	file, err := c.destination(d.Get("global.name"))
	if err != nil && c.output != "" {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	at := here
	if file != "" {
		if at, err = filepath.Abs(filepath.Dir(file)); err != nil {
			return nil, fmt.Errorf("find %s: %w", file, err)
		}
	}
	path := d.Get("platform.release")
	if os.Getenv(moduleEnv) != "" { // who calls puts the file where they want
		return d.Bytes()
	}
	if at != here && strings.Contains(path, "/") && !filepath.IsAbs(path) && !document.Refers(path) {
		d.SetText("platform.release", filepath.Join(here, path))
	}
	return d.Bytes()
}

// take takes over answers that were given.
func (s *started) take(given []answers.Given) {
	for _, g := range given {
		s.Given[g.Field.Path] = true
		s.problems = append(s.problems, wrong(s.Draft.Set(g.Field, g.Answer))...)
	}
}

func wrong(p *config.Problem) []config.Problem {
	if p == nil {
		return nil
	}
	return []config.Problem{*p}
}

// given makes the file without asking.
func (c *configuring) given(io streams) ([]byte, error) {
	fragment, err := c.answers(io.in)
	if err != nil {
		return nil, err
	}
	plain, err := answers.NewSchema(describe(), nil)
	if err != nil {
		return nil, err
	}
	first, err := c.start(plain, nil, fragment)
	if err != nil {
		return nil, err
	}
	schema, components, _ := c.platform(first.Draft)
	if schema == nil { // its problem is one of check
		schema = plain
	}
	provider := first.Draft.Get("provider")
	if provider == "" {
		provider = config.Default().Provider
	}
	s, err := c.start(schema, components, fragment, provider)
	if err != nil {
		return nil, err
	}
	s.tell(io.err)
	missing := answers.Missing(s.Draft, schema.Must(provider))
	draft, problems := s.Complete(provider)
	text, err := c.text(draft)
	if err != nil {
		return nil, err
	}
	problems = slices.Concat(s.problems, missing, problems)
	for _, p := range c.check(text) {
		if !slices.ContainsFunc(problems, func(other config.Problem) bool { return other.Field == p.Field }) {
			p.Line = 0 // of a file that nobody has seen
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return nil, c.invalid(problems)
	}
	return text, c.inTheWay(draft.Get("global.name"), text)
}

func (c *configuring) invalid(problems []config.Problem) error {
	return &fault.Fault{Code: config.CodeInvalid, Class: fault.Usage, Op: "configure", Err: &config.Invalid{Problems: problems},
		Fix: "give or correct what is listed, then run the same command again; slipway configure on a terminal asks for it"}
}

// codeInTheWay: there is another configuration already where this one would be written,
// and nobody was asked.
// Remedy: begin with the one that is there: `slipway configure --deployment NAME`, or
// `--file FILE --output FILE`; or replace it: `--force`.
const codeInTheWay fault.Code = "CFG-012"

// inTheWay refuses to replace a file that was not begun with.
func (c *configuring) inTheWay(name string, text []byte) error {
	file, err := c.destination(name)
	if err != nil || c.force || file == c.from {
		return err
	}
	there, err := readIfThere(file)
	if err != nil || there == nil || bytes.Equal(there, text) {
		return err
	}
	return &fault.Fault{Code: codeInTheWay, Class: fault.Usage, Op: "configure", Err: fmt.Errorf("%s is there already, and is another one", file),
		Fix: "begin with it (--deployment NAME, or --file FILE), or replace it: --force"}
}

// answers reads the file with answers.
func (c *configuring) answers(in io.Reader) (text []byte, err error) {
	switch c.fragment {
	case "":
		return nil, nil
	case "-":
		text, err = io.ReadAll(io.LimitReader(in, 2<<20))
	default:
		text, err = os.ReadFile(c.fragment)
	}
	if err != nil {
		return nil, &fault.Fault{Code: codeUnreadable, Class: fault.Usage, Op: "read the answers", Err: err, Fix: "give --answers the path of a file that exists"}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	return answersCurrent(text)
}

// answersCurrent are answers in the current version: of that, if they do not say.
func answersCurrent(text []byte) ([]byte, error) {
	doc, _ := document.Parse(text)
	if doc != nil && !doc.Has("apiVersion") && !doc.Has("version") {
		return text, nil
	}
	current, _, err := config.Migrate(text, "the answers")
	return current, err
}

// platform is the schema with what the platform release of a draft brings, and its
// components. The problem is that of a release that cannot be read.
func (c *configuring) platform(d *answers.Draft) (*answers.Schema, []answers.Component, error) {
	t := &target{platform: c.t.platform, cfg: config.Default()}
	if release := d.Get("platform.release"); release != "" {
		t.cfg.Platform.Release = release
	}
	release, err := t.releaseHere()
	if err != nil {
		return nil, nil, err
	}
	schema, err := answers.NewSchema(describe(), release.SettingsSchema())
	if err != nil {
		return nil, nil, err
	}
	var components []answers.Component
	for _, part := range release.Components {
		if !part.Required {
			components = append(components, answers.Component{Name: part.Name, On: part.Enabled})
		}
	}
	return schema, components, nil
}
