package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/bounded"
)

// notText rejects data that should not be passed to a YAML parser.
func notText(data []byte) (Problem, bool) {
	if len(data) > bounded.Written {
		return Problem{Got: fmt.Sprintf("%d bytes", len(data)), Want: "at most 1 MiB"}, false
	}
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return Problem{Line: 1, Got: "text in UTF-16", Want: "YAML text in UTF-8"}, false
	}
	line := 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r':
			return Problem{Line: line, Got: fmt.Sprintf("the byte 0x%02x", data[i]), Want: "YAML text in UTF-8"}, false
		}
		i += size
	}
	return Problem{}, true
}

// Syntax converts the error of a YAML parser that was given data. The parser's message may
// quote the document, so the name of an unknown anchor, which may be a secret that starts
// with *, is not shown.
func Syntax(data []byte, err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{Got: text, Want: "valid YAML"}
	if m := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Got = m[2]
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	switch at := brokenAt(lines); {
	case at == 0:
	case strings.Contains(p.Got, "expected ','") && p.Line >= at:
		p.Line++ // here the parser counts from 0 and is more accurate
	default:
		p.Line = at
	}
	p.Line = min(p.Line, 1+bytes.Count(bytes.TrimSpace(data), []byte("\n")))
	if at := p.Line - 1; at >= 0 && at < len(lines) {
		if rest := bytes.TrimLeft(lines[at], " \t"); bytes.ContainsRune(lines[at][:len(lines[at])-len(rest)], '\t') {
			return Problem{Line: p.Line, Got: "a tab in the indentation", Want: "spaces"}
		}
	}
	if strings.HasPrefix(p.Got, "unknown anchor") {
		p.Got = "unknown anchor"
	}
	p.Got = "a syntax error (" + p.Got + ")"
	return p
}

// Documents up to this size are searched for the line of a syntax error.
const (
	fewLines = 400
	fewBytes = 16 << 10
)

// brokenAt returns the first line up to which the document is not valid YAML, for
// instance because something opened there is never closed. The parser itself only knows
// the line of the mapping around the error. 0: unknown.
func brokenAt(lines [][]byte) int {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if len(lines) > fewLines || size > fewBytes {
		return 0
	}
	data := bytes.Join(lines, nil)
	for n := len(lines) - 1; n >= 0; n-- {
		size -= len(lines[n])
		if isYAML(data[:size]) {
			return n + 1
		}
	}
	return 0
}

func isYAML(data []byte) bool {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// Quote quotes a value for a message. It hides credentials and the query of a URL, and
// truncates long values.
func Quote(s string) string {
	const most = 40
	s = inURL.ReplaceAllString(s, "…@")
	if before, _, ok := strings.Cut(s, "?"); ok {
		s = before + "?…"
	}
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Shown quotes a value for a message, or is "nothing" if it is empty.
func Shown(s string) string {
	if s == "" {
		return "nothing"
	}
	return Quote(s)
}

// inURL matches a password before a host, with the user name if there is one.
var inURL = regexp.MustCompile(`(?s)[^\s@:/,]*:.*@`)

// QuoteKey quotes a key for a message, without what follows a colon or an equals sign in
// it, as that is probably a value.
func QuoteKey(s string) string { return Quote(key(s)) }

// key returns the part of a key that may be shown.
func key(s string) string {
	if i := strings.IndexAny(s, ":="); i >= 0 {
		return s[:i+1] + "…"
	}
	return s
}
