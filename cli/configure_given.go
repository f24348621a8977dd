package cli

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
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

// started is a draft of what was found, with the fields that need not be asked.
type started struct {
	*answers.Interview
	given    []answers.Given
	problems []config.Problem // with them
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
func (c *configuring) start(schema *answers.Schema, components []answers.Component, fragment []byte) (*started, error) {
	draft, err := answers.NewDraft(schema, c.base)
	if err != nil {
		return nil, err
	}
	s := &started{Interview: &answers.Interview{Schema: schema, Draft: draft, Components: components, Given: map[string]bool{}, Check: c.check}}
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
			return nil, &fault.Fault{Code: codeUnreadable, Class: fault.Usage, Op: "read the answers", Err: err, Fix: "give --answers a file with YAML as in a configuration"}
		}
		draft.Merge(more)
		if name := more.Get("global.name"); name != "" && c.deployment != "" && name != c.deployment {
			s.problems = append(s.problems, config.Problem{Field: "global.name", Got: document.Quote(name) + " in --answers", Want: c.deployment + ", as --deployment says, or no --deployment"})
		}
	}
	given, problems := schema.Assignments(c.sets)
	s.problems = append(s.problems, problems...)
	if c.deployment != "" {
		if f, wrong := schema.Field("global.name"); wrong == nil {
			given = append(given, answers.Given{Field: f, Answer: c.deployment, By: "--deployment"})
		}
	}
	s.take(given)
	return s, nil
}

// environ are the variables that may be answers. Those of another deployment, which
// slipway env has left in the shell, are none.
func (c *configuring) environ() []string {
	if c.strange {
		return nil
	}
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, deployments.EnvFolder+"=") })
}

// suggest enters what variables of other programs suggest for sections of the file.
func (s *started) suggest(sections ...string) {
	for _, section := range sections {
		for _, g := range s.Schema.Usual(section, os.LookupEnv) {
			if !s.Draft.Has(g.Field.Path) {
				s.problems = append(s.problems, wrong(s.Draft.Set(g.Field, g.Answer))...)
			}
		}
	}
}

// resolve is the absolute path of the platform release that a draft names with a path:
// one of the earlier file is relative to that, any other to the working directory.
func (c *configuring) resolve(path string) (string, error) {
	if path == c.release && c.release != "" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.from), path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return abs, nil
}

// text is the file that a draft makes, for the place where it is written: a relative
// path of the platform release in a file is relative to the file.
func (c *configuring) text(d *answers.Draft) ([]byte, error) {
	path := d.Get("platform.release")
	if os.Getenv(moduleEnv) != "" || !strings.Contains(path, "/") || filepath.IsAbs(path) || document.Refers(path) {
		return d.Bytes()
	}
	abs, err := c.resolve(path)
	if err != nil {
		return nil, err
	}
	file, err := c.destination(d.Get("global.name"))
	if err != nil && c.output != "" {
		return nil, err
	}
	if there, err := filepath.Abs(filepath.Join(filepath.Dir(file), path)); err != nil || there != abs {
		d.SetText("platform.release", abs)
	}
	return d.Bytes()
}

// take takes over answers that were given.
func (s *started) take(given []answers.Given) {
	s.given = append(s.given, given...)
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
	fragment, err := c.answers(io)
	if err != nil {
		return nil, err
	}
	plain := answers.NewSchema(describe(), nil)
	first, err := c.start(plain, nil, fragment)
	if err != nil {
		return nil, err
	}
	schema, components, err := c.platform(first.Draft)
	if err != nil { // which check says as well
		schema = plain
	}
	provider := first.Draft.Get("provider")
	if provider == "" {
		provider = config.Default().Provider
	}
	s, err := c.start(schema, components, fragment)
	if err != nil {
		return nil, err
	}
	s.suggest(provider)
	for _, g := range s.given {
		section, _, _ := strings.Cut(g.Field.Path, ".")
		if g.By == "--set" && section != provider && slices.Contains(providerRegistry().Names(), section) {
			s.problems = append(s.problems, config.Problem{Field: g.Field.Path, Got: "an answer", Want: "none, as the provider is " + provider + "; or --set provider=" + section})
		}
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
const codeInTheWay fault.Code = "CFG-012"

// inTheWay refuses to replace a file that was not begun with.
func (c *configuring) inTheWay(name string, text []byte) error {
	file, err := c.destination(name)
	if err != nil || c.force || same(file, c.from) {
		return err
	}
	there, err := readIfThere(file)
	if err != nil || there == nil || bytes.Equal(there, text) {
		return err
	}
	return &fault.Fault{Code: codeInTheWay, Class: fault.Usage, Op: "configure", Err: fmt.Errorf("%s is there already, and is another one", file),
		Fix: "begin with it (--deployment NAME, or --file FILE), or replace it: --force"}
}

// same tells whether two paths lead to the same file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// answers reads the file with answers.
func (c *configuring) answers(io streams) (text []byte, err error) {
	if c.fragment == "" {
		return nil, nil
	}
	if text, err = contents(c.fragment, io); err != nil {
		return nil, unreadable("read the answers", "give --answers the path of a file that exists", err)
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
// components. The error is that of a release that cannot be read.
func (c *configuring) platform(d *answers.Draft) (*answers.Schema, []answers.Component, error) {
	cfg := config.Default()
	if name := d.Get("platform.release"); name != "" {
		cfg.Platform.Release = name
	}
	release, err := c.releaseOf(cfg)
	if err != nil {
		return nil, nil, err
	}
	var components []answers.Component
	for _, part := range release.Components {
		if !part.Required {
			components = append(components, answers.Component{Name: part.Name, On: part.Enabled})
		}
	}
	return answers.NewSchema(describe(), release.SettingsSchema()), components, nil
}

// releaseOf is the platform release of a configuration in the making.
func (c *configuring) releaseOf(cfg *config.Config) (*platform.Release, error) {
	t := &target{platform: c.t.platform, cfg: cfg}
	if t.platform == "" && cfg.ReleaseIsPath() {
		var err error
		if t.platform, err = c.resolve(cfg.Platform.Release); err != nil {
			return nil, err
		}
	}
	return t.releaseHere()
}
