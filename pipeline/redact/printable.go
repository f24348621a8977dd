package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// sequences matches terminal escape sequences: CSI, strings (OSC, DCS, SOS, PM, APC) with
// their terminators, and the short ones.
var sequences = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]`)

// Printable returns s without what does something to a terminal that shows it, or to who
// reads it: escape sequences, which move the cursor, change colours, write to the clipboard
// or link elsewhere; control characters but for line breaks and tabs; and characters that
// reverse the reading direction or are not seen. What is no UTF-8 is U+FFFD.
func Printable(s string) string {
	shown := func(r rune) bool { return r == '\n' || r == '\t' || r >= ' ' && r <= '~' }
	if !strings.ContainsFunc(s, func(r rune) bool { return !shown(r) }) {
		return s // the common case
	}
	s = sequences.ReplaceAllString(strings.ToValidUTF8(s, "\ufffd"), "")
	return strings.Map(func(r rune) rune {
		if shown(r) || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}
