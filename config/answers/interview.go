package answers

import (
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
)

// Interview is what has been said and what is still asked. The answers to questions
// are kept by field, as text.
type Interview struct {
	Schema     *Schema
	Draft      *Draft
	Components []Component
	// Given are the fields that need not be asked, since an answer was given for them.
	Given map[string]bool
	// Check says what is wrong with a file.
	Check func(file []byte) []config.Problem
}

// Platform takes over what the platform release brings: the schema with its settings,
// and its components.
func (v *Interview) Platform(s *Schema, components []Component) {
	v.Schema, v.Draft.schema, v.Components = s, s, components
}

// Ask leaves out what need not be asked, and what cannot be said in a line.
func (v *Interview) Ask(pages []Page) []Page {
	return v.without(pages, func(q Question) bool { return v.Given[q.Path] || v.passed(q) })
}

// Changed returns the questions whose answers are not what they were before.
func (v *Interview) Changed(pages []Page, before, after map[string]string) []Page {
	return v.without(pages, func(q Question) bool { return before[q.Path] == after[q.Path] })
}

// passed reports whether a question is none for a form: what the draft says there stays.
func (v *Interview) passed(q Question) bool {
	return q.Path != Components && q.Path != Extras &&
		(q.Type == Other || q.Kind != File && !v.Draft.line(q.Path) || q.within != "" && !v.Draft.Has(q.within))
}

func (v *Interview) without(pages []Page, leave func(Question) bool) []Page {
	var out []Page
	for _, p := range pages {
		p.Questions = slices.DeleteFunc(slices.Clone(p.Questions), leave)
		if len(p.Questions) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Before returns the answers that the draft has already for the questions of pages, or
// the defaults where it has none.
func (v *Interview) Before(pages []Page) map[string]string {
	out := map[string]string{}
	for _, p := range pages {
		for _, q := range p.Questions {
			switch {
			case q.Path == Components:
				out[q.Path] = strings.Join(v.on(), ",")
			case q.Path == Extras:
				out[q.Path] = strings.Join(slices.DeleteFunc(extras(), func(s string) bool { return !v.chosen(s) }), ",")
			case q.Kind == File: // what there is stays unless a file is named
			case v.Draft.Has(q.Path):
				out[q.Path] = v.Draft.Get(q.Path)
			case q.Path == "global.domain" && v.must(v.Draft, q.Path): // whose default is for this machine
				out[q.Path] = ""
			case p.Extra == "" || q.Kind == Choice || v.chosen(p.Extra):
				out[q.Path] = q.Default
			default:
				out[q.Path] = ""
			}
		}
	}
	return out
}

// chosen reports whether the draft says something in a section that may be left out.
func (v *Interview) chosen(section string) bool {
	if section == "tls" { // whose mode alone may say that there is none
		return v.Draft.Get("tls.mode") == config.Given || v.Draft.Has("tls.certificate") || v.Draft.Has("tls.key") || v.Draft.Has("tls.ca")
	}
	return v.Draft.Has(section)
}

// on returns the components that are installed, as the draft has it.
func (v *Interview) on() []string {
	var out []string
	for _, c := range v.Components {
		if said := v.Draft.Get(Enabled(c.Name)); said == "true" || said == "" && c.On {
			out = append(out, c.Name)
		}
	}
	return out
}

// Asked reports whether a page is asked: unless it is for a section that was not chosen.
func (p Page) Asked(answers map[string]string) bool {
	return p.Extra == "" || slices.Contains(items(answers[Extras]), p.Extra)
}

// items returns those of a list as an answer is written.
func items(answer string) []string {
	if answer == "" {
		return nil
	}
	return strings.Split(answer, ",")
}

// With returns the draft with the answers to the questions of pages, and what is wrong with
// them as far as it cannot be said in a file.
func (v *Interview) With(pages []Page, answers map[string]string) (*Draft, []config.Problem) {
	d := v.Draft.Clone()
	var problems []config.Problem
	for _, p := range pages {
		if !p.Asked(answers) {
			if v.chosen(p.Extra) {
				d.Remove(p.Extra)
			}
			continue
		}
		if p.Extra == "tls" && !v.Given["tls.mode"] {
			d.put("tls.mode", text(config.Given))
		}
		for _, q := range p.Questions {
			if wrong := v.take(d, q, answers[q.Path]); wrong != nil {
				problems = append(problems, *wrong)
			}
		}
	}
	return d, problems
}

// take takes over one answer.
func (v *Interview) take(d *Draft, q Question, answer string) *config.Problem {
	switch {
	case q.Path == Extras:
	case q.Path == Components:
		for _, c := range v.Components {
			on := slices.Contains(items(answer), c.Name)
			if f, wrong := v.Schema.Field(Enabled(c.Name)); wrong == nil && (on != c.On || d.Has(f.Path)) {
				d.put(f.Path, scalarBool(on))
			}
		}
	case q.Kind == File:
		if answer == "" {
			return nil
		}
		content, wrong := q.read(answer)
		if wrong != nil {
			return wrong
		}
		return d.Set(q.Field, content)
	default:
		return d.Set(q.Field, strings.TrimSpace(answer))
	}
	return nil
}

// Complete returns the draft with the defaults of all questions that nobody has answered:
// what a form makes in which everything is left as it stands.
func (v *Interview) Complete(provider string) (*Draft, []config.Problem) {
	pages := v.without(append(v.Schema.First(), v.Schema.Rest(provider, v.Components)...), v.passed)
	return v.With(pages, v.Before(pages))
}

// Try returns what is wrong with the answer to one question, the others being as they are;
// nil if nothing.
func (v *Interview) Try(pages []Page, answers map[string]string, q Question) *config.Problem {
	d, problems := v.With(pages, answers)
	if p := about(problems, q.Path); p != nil {
		return p
	}
	if !d.Has(q.Path) && (q.key() || v.must(d, q.Path)) {
		return q.wrong("nothing", "an answer"+q.leave())
	}
	text, err := d.Bytes()
	if err != nil {
		return q.wrong(err.Error(), "something that a file can hold")
	}
	return about(v.Check(text), q.Path)
}

// must reports whether somebody has to say what is in a field.
func (v *Interview) must(d *Draft, path string) bool {
	provider := d.Get("provider")
	if provider == "" {
		provider = v.Schema.DefaultProvider()
	}
	return slices.ContainsFunc(v.Schema.Must(provider), func(f Field) bool { return f.Path == path })
}

// key reports whether a section says nothing without this field.
func (f Field) key() bool {
	return slices.Contains([]string{"smtp.host", "observability.endpoint", "state.url", "tls.certificate"}, f.Path)
}

// leave says how to do without the field's section.
func (f Field) leave() string {
	if !f.key() {
		return ""
	}
	section, _, _ := strings.Cut(f.Path, ".")
	return "; go back to leave " + section + " out"
}

// about returns the first problem of a field.
func about(problems []config.Problem, path string) *config.Problem {
	for _, p := range problems {
		rest, ok := strings.CutPrefix(p.Field, path)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			p.Line = 0
			return &p
		}
	}
	return nil
}
