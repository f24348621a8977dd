package document

import (
	"fmt"
	"slices"
	"strings"
)

// Invalid is every problem of a document, in the order of its lines.
type Invalid struct {
	Problems []Problem
}

// most is how many problems a message lists.
const most = 100

// Error lists the problems, one per line after the first.
func (e *Invalid) Error() string {
	var b strings.Builder
	if len(e.Problems) == 1 {
		b.WriteString("1 problem:")
	} else {
		fmt.Fprintf(&b, "%d problems:", len(e.Problems))
	}
	for i, p := range e.Problems {
		if i == most {
			fmt.Fprintf(&b, "\n  … and %d more", len(e.Problems)-most)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Merge makes one list of problems found in several ways: it completes them
// with lines, keeps the first of each field (a field that could not be decoded
// is not worth validating), leaves out what follows from another one (a field whose
// name is misspelt is not missing besides) and sorts them by line.
func (d *Document) Merge(problems ...Problem) []Problem {
	var out []Problem
	seen, meant := map[string]bool{}, map[string]bool{}
	for _, p := range problems {
		if p.Meant != "" && !d.Has(p.Meant) {
			meant[p.Meant] = true
		}
	}
	follows := func(p Problem) bool {
		return p.Cause != "" && (meant[p.Cause] || slices.ContainsFunc(problems, func(other Problem) bool {
			return other.Cause == "" && within(other.Field, p.Cause)
		}))
	}
	for _, p := range problems {
		if p.Field != "" && seen[p.Field] || meant[p.Field] || follows(p) {
			continue
		}
		seen[p.Field] = true
		if p.Line == 0 {
			p.Line = d.Line(p.Field)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Problem) int { return a.Line - b.Line })
	return out
}

// List collects problems without lines.
type List []Problem

// Add adds a problem.
func (l *List) Add(field, got, want string) {
	*l = append(*l, Problem{Field: field, Got: got, Want: want})
}

// Follow adds a problem that is none where the field cause has one.
func (l *List) Follow(cause, field, got, want string) {
	*l = append(*l, Problem{Field: field, Got: got, Want: want, Cause: cause})
}

// OneOf is "a", "a or b", "a, b or c".
func OneOf(names ...string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
