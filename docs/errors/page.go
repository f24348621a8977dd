package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// class is one class of faults, as package fault has it.
type class struct {
	name    string // "preflight"
	exit    int
	meaning string
}

// classes are those of package fault in the order of their exit codes.
func (s *source) classes() ([]class, error) {
	p := s.packages[faultDir]
	if p == nil {
		return nil, errors.New("there is no package fault")
	}
	var out []class
	for _, spec := range p.constants() {
		if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != "Class" {
			continue
		}
		name := spec.Names[0].Name
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return nil, fmt.Errorf("%s: the value of %s is no number", s.at(spec), name)
		}
		exit, err := strconv.Atoi(lit.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.at(spec), err)
		}
		text, ok := strings.CutPrefix(flat(spec.Doc.Text()), name+": ")
		if !ok {
			return nil, fmt.Errorf("%s: the comment does not begin with %q", s.at(spec), name+": ")
		}
		out = append(out, class{strings.ToLower(name), exit, text})
	}
	slices.SortFunc(out, func(a, b class) int { return a.exit - b.exit })
	return out, nil
}

// flat is text in one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

const intro = `# Errors

<!-- Written from the code: make generate. -->

Each error that Slipway prints has a code, the operation that went wrong, its cause and a remedy; one that says that something did not happen in time also says what was waited for, where, for how long, and what was seen last. Codes are API: a code keeps its meaning, is never renumbered and never used again. ` + "`slipway explain CODE`" + ` shows an entry of this page.

The class is the exit code of the process; when several steps fail, that of the first.

`

// render is the page.
func (s *source) render(entries []*entry) ([]byte, error) {
	classes, err := s.classes()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(intro)
	b.WriteString("| exit code | class | what it means |\n|---|---|---|\n")
	for _, c := range classes {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", c.exit, c.name, strings.TrimSuffix(c.meaning, "."))
	}
	for _, a := range areas() {
		first := true
		for _, e := range entries {
			if title, _ := sectionOf(e.code); title != a.title {
				continue
			}
			if first {
				fmt.Fprintf(&b, "\n## %s\n", a.title)
				first = false
			}
			s.entry(&b, e, classes)
		}
	}
	return b.Bytes(), nil
}

func (s *source) entry(b *bytes.Buffer, e *entry, classes []class) {
	var exits, packages []string
	for _, c := range classes {
		if slices.Contains(e.classes, c.name) {
			exits = append(exits, fmt.Sprintf("%s (exit code %d)", c.name, c.exit))
		}
	}
	for _, dir := range e.raised {
		packages = append(packages, fmt.Sprintf("[%s](%s)", dir, path.Join("..", dir)))
	}
	fmt.Fprintf(b, "\n### %s\n%s\n\n", e.code, e.cause)
	fmt.Fprintf(b, "- Remedy: %s\n- Class: %s\n- Raised by: %s\n", e.remedy, list(exits, "or"), list(packages, "and"))
}

// list is "a, b or c", with that word before the last.
func list(all []string, word string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " " + word + " " + all[last]
}
