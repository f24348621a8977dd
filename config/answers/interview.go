package answers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/config"
)

// Interview is the state of asking for a configuration. Answers are texts by field.
type Interview struct {
	Schema     *Schema
	Draft      *Draft
	Components []Component
	// Given are the fields that have been answered and need no question.
	Given map[string]bool
	// Check returns the problems of a file.
	Check func(file []byte) []config.Problem
}

// Platform sets what depends on the platform release: the schema with its settings, and
// its components.
func (v *Interview) Platform(s *Schema, components []Component) {
	v.Schema, v.Draft.schema, v.Components = s, s, components
}

// Pending returns pages without the questions that need not or cannot be asked.
func (v *Interview) Pending(pages []Page) []Page {
	return v.without(pages, func(q Question) bool { return v.Given[q.Path] || v.unanswerable(q) })
}

// Changed returns the questions whose answers have changed.
func (v *Interview) Changed(pages []Page, before, after map[string]string) []Page {
	return v.without(pages, func(q Question) bool { return before[q.Path] == after[q.Path] })
}

// unanswerable reports whether a form cannot ask a question. The draft's value is
// preserved.
func (v *Interview) unanswerable(q Question) bool {
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

// Before returns the draft's answers to the questions of pages, or the defaults where it
// has none.
func (v *Interview) Before(pages []Page) map[string]string {
	out := map[string]string{}
	for _, p := range pages {
		for _, q := range p.Questions {
			switch {
			case q.Path == Components:
				out[q.Path] = strings.Join(v.on(), ",")
			case q.Path == Extras:
				out[q.Path] = strings.Join(slices.DeleteFunc(extras(), func(s string) bool { return !v.chosen(s) }), ",")
			case q.Kind == File: // preserved unless a file is named
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

// chosen reports whether an optional section is set in the draft.
func (v *Interview) chosen(section string) bool {
	if section == "tls" { // its mode may be set to self-signed
		return v.Draft.Get("tls.mode") == config.UserCertificate || v.Draft.Has("tls.certificate") || v.Draft.Has("tls.key")
	}
	return v.Draft.Has(section)
}

// on returns the components that are installed according to the draft.
func (v *Interview) on() []string {
	var out []string
	for _, c := range v.Components {
		if enabled := v.Draft.Get(Enabled(c.Name)); enabled == "true" || enabled == "" && c.On {
			out = append(out, c.Name)
		}
	}
	return out
}

// Asked reports whether a page is asked, which a page for a section that was not chosen
// is not.
func (p Page) Asked(answers map[string]string) bool {
	return p.Extra == "" || slices.Contains(items(answers[Extras]), p.Extra)
}

// items splits the answer for a list.
func items(answer string) []string {
	if answer == "" {
		return nil
	}
	return strings.Split(answer, ",")
}

// With returns a copy of the draft with the answers to the questions of pages, and the
// problems of answers that cannot be written to a file.
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
			d.put("tls.mode", text(config.UserCertificate))
		}
		for _, q := range p.Questions {
			if wrong := v.apply(d, q, answers[q.Path]); wrong != nil {
				problems = append(problems, *wrong)
			}
		}
	}
	return d, problems
}

func (v *Interview) apply(d *Draft, q Question, answer string) *config.Problem {
	switch {
	case q.Path == Extras:
	case q.Path == Components:
		for _, c := range v.Components {
			on := slices.Contains(items(answer), c.Name)
			if f, wrong := v.Schema.Field(Enabled(c.Name)); wrong == nil && (on != c.On || d.Has(f.Path)) {
				d.Set(f, strconv.FormatBool(on))
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

// Complete returns the draft with the defaults of all unanswered questions, like a form
// that is submitted unchanged.
func (v *Interview) Complete(provider string) (*Draft, []config.Problem) {
	pages := v.without(append(v.Schema.First(), v.Schema.Rest(provider, v.Components)...), v.unanswerable)
	return v.With(pages, v.Before(pages))
}

// Try returns the problem with the answer to one question, given the other answers; nil
// if there is none.
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

// must reports whether a field must be answered.
func (v *Interview) must(d *Draft, path string) bool {
	return slices.ContainsFunc(v.Schema.Must(v.Schema.Provider(d)), func(f Field) bool { return f.Path == path })
}

// key reports whether the field's section has no effect without it.
func (f Field) key() bool {
	return slices.Contains([]string{"smtp.host", "observability.endpoint", "git.url", "state.url", "tls.certificate"}, f.Path)
}

// leave is the hint how to leave out the field's section.
func (f Field) leave() string {
	if !f.key() {
		return ""
	}
	section, _, _ := strings.Cut(f.Path, ".")
	return "; go back to leave " + section + " out"
}

// about returns the first problem of a field; nil if there is none.
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
