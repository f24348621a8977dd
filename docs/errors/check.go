package main

import (
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// literals finds codes that stand in the code without their constant.
func (s *source) literals() []error {
	var prefixes []string
	for _, a := range areas() {
		prefixes = append(prefixes, a.prefixes...)
	}
	code := regexp.MustCompile(`\b(` + strings.Join(prefixes, "|") + `)-\d{3}\b`)
	var errs []error
	for _, p := range s.sorted() {
		for _, f := range p.files {
			if f.test || within(p.path, endToEnd) {
				continue
			}
			ast.PreorderStack(f.syntax, nil, func(n ast.Node, stack []ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok {
					return true
				}
				if spec, ok := stack[len(stack)-1].(*ast.ValueSpec); ok && p.codes[spec.Names[0].Name] != "" {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && code.MatchString(text) {
					errs = append(errs, fmt.Errorf("%s: %s is written out; use the constant of the package that raises it", s.at(n), code.FindString(text)))
				}
				return true
			})
		}
	}
	return errs
}

// used finds out who raises each code, with what class, and which tests look
// for it.
func (s *source) used(all map[string]*entry) {
	for _, p := range s.sorted() {
		for _, f := range p.files {
			for _, u := range s.uses(p, f) {
				switch e := all[u.code]; {
				case e == nil: // documented has said so
				case f.test && looksFor(p, u):
					e.asserted = add(e.asserted, f.path)
				case !f.test && u.kind != compares:
					e.raise(s, p, u)
				}
			}
		}
	}
}

// raise notes a place of the program that raises the code.
func (e *entry) raise(s *source, p *folder, u use) {
	e.raised = add(e.raised, p.path)
	switch {
	case u.class != "":
		e.derived[u.class] = true
	case u.kind == raises:
		e.unclear = s.at(u.node)
	}
}

// looksFor tells whether a use in a test is one that shows that the code is
// raised: not of a fault that the test makes itself or that must not be there, and
// not in a test that may skip itself, that needs a real engine, or that is about
// the page.
func looksFor(p *folder, u use) bool {
	return !u.idle && !p.skipped[u.function] && !within(p.path, endToEnd) && !within(p.path, "docs")
}

// within tells whether a folder is dir or below it.
func within(folder, dir string) bool { return folder == dir || strings.HasPrefix(folder, dir+"/") }

// endToEnd is the folder of the tests on a real engine.
const endToEnd = "ci/test/e2e"

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// settle decides on the classes: those of the code, or those of the comment
// where the code does not tell them all.
func (e *entry) settle(known []class) error {
	var errs []error
	derived := slices.Sorted(maps.Keys(e.derived))
	switch {
	case len(e.stated) == 0 && e.unclear != "":
		errs = append(errs, fmt.Errorf("%s: the class is not told by %s; add a line \"// Class: step or timeout.\" to the comment", e.place, e.unclear))
	case len(e.stated) == 0:
		e.stated = derived
	}
	for _, c := range derived {
		if !slices.Contains(e.stated, c) {
			errs = append(errs, fmt.Errorf("%s: its class is %s, and it is raised with %s too", e.place, strings.Join(e.stated, ", "), c))
		}
	}
	for _, k := range known {
		if slices.Contains(e.stated, k.name) {
			e.classes = append(e.classes, k.name)
			if e.unclear == "" && !e.derived[k.name] {
				errs = append(errs, fmt.Errorf("%s: nothing raises it with class %s", e.place, k.name))
			}
		}
	}
	if len(e.classes) != len(e.stated) {
		errs = append(errs, fmt.Errorf("%s: of the classes %s one does not exist", e.place, strings.Join(e.stated, ", ")))
	}
	return errors.Join(errs...)
}
