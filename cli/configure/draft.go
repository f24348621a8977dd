package configure

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// initialDraft is a draft with the fields that have an answer already.
type initialDraft struct {
	*answers.Interview
	given    []answers.Given
	problems []config.Problem // with them
	answered []string         // variables that are answers
	unknown  []string         // variables that only look like answers
}

// print lists the variables that are answers, because they may be left over.
func (s *initialDraft) print(w io.Writer) {
	if len(s.answered) > 0 {
		fmt.Fprintf(w, "slipway: these variables are answers: %s\n", strings.Join(s.answered, ", "))
	}
	for _, name := range s.unknown {
		fmt.Fprintf(w, "slipway: the variable %s is for no field of this configuration\n", name)
	}
}

// start makes a draft of the earlier configuration and the given answers, for a platform release.
func (c *Command) start(schema *answers.Schema, components []answers.Component, fragment []byte) (*initialDraft, error) {
	draft, err := answers.NewDraft(schema, c.base)
	if err != nil {
		return nil, err
	}
	s := &initialDraft{Interview: &answers.Interview{Schema: schema, Draft: draft, Components: components, Given: map[string]bool{}, Check: c.check}}
	var names []string
	for _, component := range components {
		names = append(names, component.Name)
	}
	given, unknown := schema.Environment(c.environ(), names)
	s.unknown = unknown
	for _, g := range given {
		s.answered = append(s.answered, g.By)
	}
	s.take(given)
	if fragment != nil {
		more, err := answers.NewDraft(schema, fragment)
		if err != nil {
			return nil, &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "read the answers", Err: err, Fix: "give --answers a file with YAML as in a configuration"}
		}
		draft.Merge(more)
		if name := more.Get("global.name"); name != "" && c.deployment != "" && name != c.deployment {
			s.problems = append(s.problems, config.Problem{Field: "global.name", Got: document.Quote(name) + " in --answers", Want: c.deployment + ", as --name says, or no --name"})
		}
	}
	given, problems := schema.Assignments(c.sets)
	s.problems = append(s.problems, problems...)
	if c.deployment != "" {
		if f, wrong := schema.Field("global.name"); wrong == nil {
			given = append(given, answers.Given{Field: f, Answer: c.deployment, By: "--name"})
		}
	}
	s.take(given)
	return s, nil
}

// environ returns the variables that may be answers, unless slipway env of another deployment set them.
func (c *Command) environ() []string {
	if c.foreign {
		return nil
	}
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, config.EnvFolder+"=") })
}

func (s *initialDraft) take(given []answers.Given) {
	s.given = append(s.given, given...)
	for _, g := range given {
		s.Given[g.Field.Path] = true
		s.set(g)
	}
}

func (s *initialDraft) set(g answers.Given) {
	if wrong := s.Draft.Set(g.Field, g.Answer); wrong != nil {
		s.problems = append(s.problems, *wrong)
	}
}

// given makes the file from flags and variables.
func (c *Command) given(io console.Streams) ([]byte, error) {
	fragment, err := c.answers(io)
	if err != nil {
		return nil, err
	}
	plain := answers.NewSchema(c.describe(), nil)
	first, err := c.start(plain, nil, fragment)
	if err != nil {
		return nil, err
	}
	schema, components, err := c.platform(first.Draft)
	if err != nil { // check reports it, too
		schema = plain
	}
	provider := plain.Provider(first.Draft)
	s, err := c.start(schema, components, fragment)
	if err != nil {
		return nil, err
	}
	for _, g := range s.given {
		section, _, _ := strings.Cut(g.Field.Path, ".")
		if g.By == "--set" && section != provider && slices.Contains(c.source.Providers.Names(), section) {
			s.problems = append(s.problems, config.Problem{Field: g.Field.Path, Got: "an answer", Want: "none, as the provider is " + provider + "; or --set provider=" + section})
		}
	}
	s.print(io.Err)
	missing := answers.Missing(s.Draft, schema.Must(provider))
	draft, problems := s.Complete(provider)
	text, err := c.text(draft)
	if err != nil {
		return nil, err
	}
	problems = slices.Concat(s.problems, missing, problems)
	for _, p := range c.check(text) {
		if !slices.ContainsFunc(problems, func(other config.Problem) bool { return other.Field == p.Field }) {
			p.Line = 0 // the user has not seen the file
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return nil, c.invalid(problems)
	}
	return text, c.inTheWay(draft.Get("global.name"), text)
}

// answers reads the file of --answers in the current version.
func (c *Command) answers(io console.Streams) (text []byte, err error) {
	if c.fragment == "" {
		return nil, nil
	}
	if text, err = source.Contents(c.fragment, io); err != nil {
		return nil, unreadable("read the answers", "give --answers the path of a file that exists", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	doc, _ := document.Parse(text)
	if doc != nil && !doc.Has("apiVersion") && !doc.Has("version") { // of the current version
		return text, nil
	}
	text, _, err = config.Migrate(text, "the answers")
	return text, err
}

// codeInTheWay: another configuration exists at the destination, and no form can confirm its replacement.
const codeInTheWay fault.Code = "CFG-012"

// inTheWay rejects the replacement of a file that this did not begin with.
func (c *Command) inTheWay(name string, text []byte) error {
	file, err := c.destination(name)
	if err != nil || c.force || same(file, c.from) {
		return err
	}
	there, err := readIfThere(file)
	if err != nil || there == nil || bytes.Equal(there, text) {
		return err
	}
	return &fault.Fault{Code: codeInTheWay, Class: fault.Usage, Op: "configure", Err: fmt.Errorf("%s exists, and is another one", file),
		Fix: "begin with it (--name NAME, or --file FILE), or replace it: --force"}
}
