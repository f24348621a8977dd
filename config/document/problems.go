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

// maxListed is how many problems a message lists.
const maxListed = 100

// Error lists the problems, one per line after the first.
func (e *Invalid) Error() string {
	var b strings.Builder
	if len(e.Problems) == 1 {
		b.WriteString("1 problem:")
	} else {
		fmt.Fprintf(&b, "%d problems:", len(e.Problems))
	}
	for i, p := range e.Problems {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  … and %d more", len(e.Problems)-maxListed)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Merge combines problems from several checks into one list: it adds their lines,
// retains only the first of each field (a field that could not be decoded need not be
// validated), drops those that follow from another one (a misspelt field is not reported
// as missing, too), and sorts them by line.
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

// Follow adds a problem that is dropped if the field cause has one.
func (l *List) Follow(cause, field, got, want string) {
	*l = append(*l, Problem{Field: field, Got: got, Want: want, Cause: cause})
}

// OneOf returns "a", "a or b", "a, b or c".
func OneOf(names ...string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
