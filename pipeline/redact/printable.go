package redact

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns s without what does something to a terminal that shows it, or to who
// reads it: escape sequences, which move the cursor, change colours, write to the clipboard
// or link elsewhere; control characters but for line breaks and tabs; a character that is
// struck over; and characters that reverse the reading direction or are not seen. What is no
// UTF-8 is U+FFFD. On Azure Pipelines and GitHub Actions, a blank breaks what would be a command
// to them.
func Printable(s string) string {
	if !plain(s) {
		s = strip(s, false)
	}
	if logsCommand() {
		s = command.ReplaceAllString(s, "$1$3 $2$4")
	}
	return s
}

// command matches what is a command where it is in a log: "##vso[…]", "##[…]" and, at the
// beginning of a line, "::name::". begunCommand matches the beginning of one.
var (
	command      = regexp.MustCompile(`(?mi)(#)(#(?:vso)?\[)|(^[ \t]*:)(:)`)
	begunCommand = regexp.MustCompile(`(?i)#(?:#(?:v(?:so?)?)?)?$|(?:^|\n)[ \t]*:$`)
)

// logsCommand reports whether what is printed goes to a log in which commands are obeyed.
func logsCommand() bool { return os.Getenv("TF_BUILD") != "" || os.Getenv("GITHUB_ACTIONS") != "" }

// Plain is Printable for logs: a carriage return is a line break.
func Plain(s string) string {
	return Printable(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}

// OneLine is Printable with every run of blanks and line breaks as one blank, for text that others made
// and that stands in a line of Slipway's own.
func OneLine(s string) string { return strings.Join(strings.Fields(Printable(s)), " ") }

// plain reports whether s has only characters that do nothing.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\n' && c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// strip returns what Printable does. Quoted also leaves out what JSON and other quoted text have
// escaped ("\u001b[1m"). Line breaks stay.
func strip(s string, quoted bool) string {
	if plain(s) && !(quoted && strings.IndexByte(s, '\\') >= 0) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		end, shown := unit(s, i, quoted)
		text := s[i:end]
		if r, size := utf8.DecodeRuneInString(text); r == utf8.RuneError && size == 1 {
			text = "\ufffd"
		}
		if shown {
			b.WriteString(text)
		}
		i = end
	}
	return b.String()
}

// unit returns the end of what begins at i, a character or a sequence, and whether it is shown.
func unit(s string, i int, quoted bool) (end int, shown bool) {
	r, size := utf8.DecodeRuneInString(s[i:])
	end = i + size
	switch {
	case r == '\x1b':
		return escape(s, end), false
	case r == '\\' && quoted:
		for end < len(s) && s[end] == '\\' {
			end++ // as one, or a long run would be read again from each of its characters
		}
		if code, after := escaped(s, end); after > end {
			if code == '\x1b' {
				return escape(s, after), false
			}
			return after, code == '\n' || code == '\t' || visible(code)
		}
		return end, true
	case r == utf8.RuneError && size == 1:
		r = rune(s[i]) // a byte of a terminal without UTF-8
		if r >= 0xa0 {
			return end, true
		}
	case r != '\n' && end+1 < len(s) && s[end] == '\b' && (r == '_' || strings.HasPrefix(s[end+1:], s[i:end])):
		return end + 1, false
	}
	switch r {
	case '\u009b':
		return control(s, end), false
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		if after, ended := message(s, end); ended { // else it is more likely a wrong encoding
			return after, false
		}
		return end, false
	}
	return end, r == '\n' || r == '\t' || visible(r)
}

// visible reports whether a character is seen.
func visible(r rune) bool {
	return r >= ' ' && r <= '~' || unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// maxSequence is the length of the longest escape sequence that is left out.
const maxSequence = 4 << 10

// escape returns the end of the sequence whose ESC ends at i.
func escape(s string, i int) int {
	if i == len(s) {
		return i
	}
	switch s[i] {
	case '[':
		return control(s, i+1)
	case ']', 'P', 'X', '^', '_':
		end, _ := message(s, i+1)
		return end
	}
	for end := i; end < min(len(s), i+maxSequence); end++ {
		if c := s[end]; c >= '0' && c <= '~' {
			return end + 1
		} else if c < ' ' || c > '/' {
			break
		}
	}
	return i
}

// control returns the end of a control sequence (CSI) whose parameters begin at i.
func control(s string, i int) int {
	for end := i; end < min(len(s), i+maxSequence); end++ {
		switch c := s[end]; {
		case c >= '@' && c <= '~':
			return end + 1
		case c == '\n', c == '\x1b', c > '~':
			return i
		}
	}
	return i
}

// message returns the end of a string (OSC, DCS, SOS, PM, APC) that begins at i, and whether
// it has a terminator. It ends with the line.
func message(s string, i int) (end int, ended bool) {
	for end = i; end < len(s); end++ {
		if end > i+maxSequence {
			return i, false
		}
		rest := s[end:]
		switch s[end] {
		case '\a':
			return end + 1, true
		case '\n', '\x1b':
			if strings.HasPrefix(rest, "\x1b\\") {
				return end + 2, true
			}
			return end, false
		case '\xc2':
			if strings.HasPrefix(rest, "\u009c") {
				return end + len("\u009c"), true
			}
			if len(rest) > 1 && rest[1] < '\xa0' {
				return end, false // the next one
			}
		}
	}
	return end, false
}

// escaped returns the control or invisible character that s has after the backslash before i
// (x1b, u001b, 033, e), and its end; i if there is none.
func escaped(s string, i int) (code rune, end int) {
	number := func(base, from, digits int) (rune, int) {
		if from+digits > len(s) {
			return 0, i
		}
		n, err := strconv.ParseUint(s[from:from+digits], base, 32)
		if r := rune(n); err == nil && r != '\n' && r != '\r' && r != '\t' && !visible(r) && !unicode.Is(unicode.Cs, r) {
			return r, from + digits
		}
		return 0, i
	}
	switch {
	case i == len(s):
	case s[i] == 'x':
		return number(16, i+1, 2)
	case s[i] == 'u':
		return number(16, i+1, 4)
	case s[i] == '0':
		return number(8, i, 3)
	case strings.HasPrefix(s[i:], "e["):
		return '\x1b', i + 1
	}
	return 0, i
}
