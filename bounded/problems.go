package bounded

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxProblems is how many problems are listed.
const maxProblems = 100

// Problems are what is wrong with what others made, for errors.Join: the first hundred, each in one
// line that is not long, whatever names are in it.
type Problems []error

// Add notes a problem, as fmt.Errorf makes it. No name belongs into the format.
func (p *Problems) Add(format string, args ...any) {
	switch n := len(*p); {
	case n < maxProblems:
		*p = append(*p, LineError(fmt.Errorf(format, args...)))
	case n == maxProblems:
		*p = append(*p, fmt.Errorf("and more than these %d problems", maxProblems))
	}
}

// LineError is err in one line that is not long: errors quote names that others gave, whose second
// line could pass for Slipway's own.
func LineError(err error) error {
	if text := err.Error(); len(text) <= maxMessage && text == Line(text) {
		return err
	}
	return line{Error(err)}
}

type line struct{ error }

func (l line) Error() string { return Line(l.error.Error()) }

func (l line) Unwrap() error { return l.error }

// Line is s with everything that is no part of a line of text written as Go does in quotes: a line
// break as \n, for one.
func Line(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
