package main

import (
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// entry is what the page says about one code, and what the tests check.
type entry struct {
	code    string
	cause   string
	remedy  string
	classes []string // "step", in the order of their numbers
	raised  []string // folders of the packages that raise it
	tested  string   // the end-to-end test of a code that no other can provoke

	place    string          // of its declaration, for messages
	module   string          // folder of the go.mod of its declaration
	stated   []string        // classes that the comment names
	derived  map[string]bool // classes that the code gives
	unclear  string          // a place that does not tell the class
	asserted []string        // test files that look for it
}

// area is a section of the page and the prefixes of its codes.
type area struct {
	title    string
	prefixes []string
}

// areas are the sections of the page in their order. A code with another prefix
// is an error.
func areas() []area {
	return []area{
		{"Configuration", []string{"CFG", "PRV"}},
		{"Platform release", []string{"PLT"}},
		{"Bundle", []string{"BUN", "LCK"}},
		{"Registry", []string{"REG"}},
		{"Engine", []string{"ENG", "CTR"}},
		{"Run and steps", []string{"RUN", "DEP", "STP"}},
		{"Lock and state", []string{"LOK", "STO", "SEC"}},
		{"Hooks", []string{"HOK"}},
		{"Infrastructure", []string{"INF", "LOC"}},
		{"Kubernetes", []string{"KUB"}},
		{"Pre-orchestrator", []string{"PRE", "GIT"}},
		{"Orchestrator", []string{"ORC"}},
		{"Post-orchestrator", []string{"POST"}},
	}
}

// sectionOf is the area of a code.
func sectionOf(code string) (string, bool) {
	prefix, _, _ := strings.Cut(code, "-")
	for _, a := range areas() {
		if slices.Contains(a.prefixes, prefix) {
			return a.title, true
		}
	}
	return "", false
}

// entries are all codes in the order of their names. Every rule that the code
// breaks is in the error.
func (s *source) entries() ([]*entry, error) {
	all := map[string]*entry{}
	errs := s.documented(all)
	errs = append(errs, s.literals()...)
	s.used(all)
	classes, err := s.classes()
	errs = append(errs, err)
	var out []*entry
	for _, code := range slices.Sorted(maps.Keys(all)) {
		e := all[code]
		errs = append(errs, e.settle(classes))
		out = append(out, e)
	}
	return out, errors.Join(errs...)
}

// documented reads the comments of the constants. A code that modules declare
// which cannot import each other is documented by one of them.
func (s *source) documented(all map[string]*entry) []error {
	var errs []error
	bare := map[string]string{} // places of declarations without a remedy
	seen := map[string]string{} // module and code, place
	for _, p := range s.sorted() {
		for _, spec := range p.constants() {
			for _, name := range spec.Names {
				code, ok := p.codes[name.Name]
				if !ok {
					continue
				}
				place := s.at(spec) + ": " + name.Name + " (" + code + ")"
				if before := seen[p.module+" "+code]; before != "" {
					errs = append(errs, fmt.Errorf("%s is declared before, at %s; use that constant", place, before))
				}
				seen[p.module+" "+code] = place
				if _, known := sectionOf(code); !known {
					errs = append(errs, fmt.Errorf("%s belongs to no area; add its prefix to areas in docs/errors/entries.go", place))
				}
				e, err := comment(name.Name, spec.Doc)
				switch {
				case err != nil:
					errs = append(errs, fmt.Errorf("%s: %w", place, err))
				case e == nil:
					bare[code] = place
				case all[code] != nil:
					errs = append(errs, fmt.Errorf("%s has a remedy at %s too; keep one of them", place, all[code].place))
				default:
					e.code, e.place, e.module, e.derived = code, place, p.module, map[string]bool{}
					all[code] = e
				}
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(bare)) {
		if all[code] == nil {
			errs = append(errs, fmt.Errorf("%s lacks its comment, \"NAME: what happened.\" and \"Remedy: what to do.\"; see CONTRIBUTING.md", bare[code]))
		}
	}
	return errs
}

// comment reads the comment of a code's constant; nil when it has no remedy.
func comment(name string, doc *ast.CommentGroup) (*entry, error) {
	if doc == nil {
		return nil, nil
	}
	parts := map[string]string{}
	label := name
	for line := range strings.Lines(doc.Text()) {
		for _, l := range []string{name, "Remedy", "Class", "Tested"} {
			if rest, ok := strings.CutPrefix(line, l+": "); ok {
				label, line = l, rest
			}
		}
		parts[label] = strings.TrimSpace(parts[label] + " " + strings.TrimSpace(line))
	}
	if parts["Remedy"] == "" {
		return nil, nil
	}
	if !strings.HasPrefix(doc.Text(), name+": ") {
		return nil, fmt.Errorf("the comment does not begin with %q", name+": ")
	}
	e := &entry{cause: sentence(parts[name]), remedy: sentence(parts["Remedy"]), tested: strings.TrimSuffix(parts["Tested"], ".")}
	for _, word := range strings.FieldsFunc(strings.TrimSuffix(parts["Class"], "."), func(r rune) bool { return r == ',' || r == ' ' }) {
		if word != "or" {
			e.stated = append(e.stated, word)
		}
	}
	for _, text := range []string{e.cause, e.remedy} {
		if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "`") {
			return nil, fmt.Errorf("%q does not end with a full stop", text)
		}
	}
	return e, nil
}

// sentence begins with a capital letter.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
