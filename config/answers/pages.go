package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/config"
)

// Kind is how a question is asked.
type Kind int

// The kinds of questions.
const (
	Line    Kind = iota // one line of text
	Choice              // one of Choices
	Several             // any of Choices, separated by commas
	File                // the path of a file whose text is the answer
)

// Option is one of the answers to choose from.
type Option struct {
	Answer string
	Label  string
}

// Question asks for a field. Those of Components and Extras stand for several.
type Question struct {
	Field
	Kind    Kind
	Choices []Option
}

// Title returns what the question is called: its field.
func (q Question) Title() string {
	if q.Path == Extras {
		return "more sections"
	}
	return q.Path
}

// The fields of questions that stand for several.
const (
	Components = "platform.components" // which of those that can be switched are on
	Extras     = "extras"              // which pages with an Extra are asked
)

// Page is a number of questions that belong together.
type Page struct {
	Title     string
	Help      string
	Extra     string // it is asked when this section was chosen; empty: always
	Questions []Question
}

// Component is a part of the platform that can be switched on or off.
type Component struct {
	Name string
	On   bool // unless the user says otherwise
}

// question asks for a field as its type suggests.
func (s *Schema) question(path string) Question {
	f, wrong := s.Field(path)
	if wrong != nil { // a mistake in the lists below
		panic("answers: there is no field " + path)
	}
	return f.question()
}

func (f Field) question() Question {
	q := Question{Field: f}
	if !f.Required && f.Default == "" {
		q.Choices = []Option{{"", "(left out)"}}
	}
	switch {
	case f.Type == Bool:
		q.Kind, q.Choices = Choice, append(q.Choices, Option{"true", "yes"}, Option{"false", "no"})
		return q
	case len(f.Options) > 0 && f.Type != List:
		q.Kind = Choice
		for _, o := range f.Options {
			q.Choices = append(q.Choices, Option{o, o})
		}
		return q
	case strings.HasPrefix(f.Example, "-----BEGIN"):
		q.Kind = File
	}
	q.Choices = nil
	return q
}

// First returns the questions on which the others depend: the provider, and the platform
// that is installed.
func (s *Schema) First() []Page {
	provider := s.question("provider")
	for i := range provider.Choices {
		o := &provider.Choices[i]
		o.Label = o.Answer
		if summary, ok := s.extension(o.Answer, config.SummaryExtension).(string); ok {
			o.Label += ": " + summary
		}
	}
	return []Page{{Title: "What is installed, and where", Questions: []Question{provider, s.question("platform.release")}}}
}

// Rest returns the questions for a provider and the components of a platform.
func (s *Schema) Rest(provider string, components []Component) []Page {
	scale := s.question("global.scale")
	for i, o := range scale.Choices {
		n, err := strconv.Atoi(o.Answer)
		if p := config.ProfileOf(n); err == nil {
			scale.Choices[i].Label = fmt.Sprintf("%d: %d CPUs, %d GiB of memory, %d GiB of disk", p.Scale, p.CPUs, p.MemoryGiB, p.DiskGiB)
		}
	}
	pages := []Page{{Title: "The deployment", Questions: []Question{
		s.question("global.name"), s.question("global.domain"), s.question("global.admin.email"), scale,
	}}}
	pages = append(pages, s.page("Provider "+provider, provider))
	platform := Page{Title: "The platform"}
	if len(components) > 0 {
		q := Question{Field: Field{Path: Components, Help: "Components that are installed besides those that cannot be left out."}, Kind: Several}
		for _, c := range components {
			q.Choices = append(q.Choices, Option{c.Name, c.Name})
		}
		platform.Questions = append(platform.Questions, q)
	}
	for _, f := range s.Fields("platform.settings") {
		platform.Questions = append(platform.Questions, f.question())
	}
	pages = append(pages, platform)

	more := Question{Field: Field{Path: Extras, Help: "What else is to be set? None is needed."}, Kind: Several}
	for _, section := range extras() {
		more.Choices = append(more.Choices, Option{section, section + ": " + strings.TrimSuffix(s.Help(section), ".")})
	}
	pages = append(pages, Page{Title: "More", Questions: []Question{more}})
	for _, section := range extras() {
		p := s.page(section, section)
		p.Extra = section
		p.Questions = slices.DeleteFunc(p.Questions, func(q Question) bool { return q.Path == "tls.mode" })
		pages = append(pages, p)
	}
	return slices.DeleteFunc(pages, func(p Page) bool { return len(p.Questions) == 0 })
}

// extras returns the sections that most deployments leave out.
func extras() []string {
	return []string{"tls", "proxy", "smtp", "observability", "git", "state", "advanced"}
}

func (s *Schema) page(title, section string) Page {
	p := Page{Title: title, Help: s.Help(section)}
	for _, f := range s.Fields(section) {
		p.Questions = append(p.Questions, f.question())
	}
	return p
}

// Must returns the fields that a deployment on a provider has no sensible default for:
// somebody has to say them.
func (s *Schema) Must(provider string) []Field {
	var out []Field
	for _, path := range []string{"global.name", "global.domain", "global.scale"} {
		if path == "global.domain" && s.extension(provider, config.PrivateExtension) == true {
			continue
		}
		out = append(out, s.question(path).Field)
	}
	for _, section := range []string{provider, "platform.settings"} {
		for _, f := range s.Fields(section) {
			if f.Required && f.Default == "" && f.within == "" {
				out = append(out, f)
			}
		}
	}
	return out
}
