package redact

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden is what a secret is replaced by.
const hidden = "***"

// form is one way in which a secret shows up in output, however it is escaped.
type form struct {
	text string
	like *regexp.Regexp // nil where nothing in text is ever escaped
}

// escaped is how many bytes one of a form takes in output at most, but for the
// strangest ways to write it.
const escaped = 12

// written are the forms of a secret: as it is; in base64, as in a Kubernetes
// Secret and, together with other text, in HTTP's basic authentication; and line
// by line (a key in PEM).
func written(secret string) []string {
	all := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))}
	if len(secret) >= 8 { // what is left of a shorter one is in ordinary words
		for before := range 3 {
			all = append(all, within(base64.RawStdEncoding, before, secret), within(base64.RawURLEncoding, before, secret))
		}
	}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			line = strings.TrimSpace(line)
			// The markers of PEM are no secret, and a short last line would
			// blank out half the log.
			if len(line) >= 8 && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	return all
}

// within is the part of a longer text's encoding that only secret decides, which
// stands in that text after some bytes; their number modulo 3 is what counts.
func within(e *base64.Encoding, before int, secret string) string {
	code := e.EncodeToString(append(make([]byte, before), secret...))
	if (before+len(secret))%3 > 0 {
		code = code[:len(code)-1] // what follows shares it
	}
	if before > 0 {
		code = code[before+1:] // what comes before has these, the last one in part
	}
	return code
}

// newForm is text with everything that may become of it in JSON, in JSON within
// JSON, in logs and in URLs.
func newForm(text string) form {
	f := form{text: text}
	if !utf8.ValidString(text) || !strings.ContainsFunc(text, isEscaped) {
		return f
	}
	var b strings.Builder
	for _, r := range text {
		if isEscaped(r) {
			b.WriteString(escapes(r))
		} else {
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	f.like = regexp.MustCompile(b.String())
	return f
}

// isEscaped tells whether r is ever written in another way than as it is.
func isEscaped(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.~", r)
}

// escapes is the expression of all ways in which r is written.
func escapes(r rune) string {
	var percent, unicode strings.Builder
	for _, c := range []byte(string(r)) {
		fmt.Fprintf(&percent, `%%(?:25)*%02x`, c)
	}
	for _, c := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&unicode, `\\+u%04x`, c)
	}
	ways := []string{"(?i:" + percent.String() + ")", "(?i:" + unicode.String() + ")"}
	if r < utf8.RuneSelf {
		ways = append(ways, fmt.Sprintf(`(?i:\\+x%02x)`, r))
	}
	switch r {
	case '\\':
		ways = append(ways, `\\+`)
	case ' ':
		ways = append(ways, ` `, `\+`)
	case '\n':
		ways = append(ways, `\r?\n`, `(?:\\+r)?\\+n`)
	case '\r':
		ways = append(ways, `\r`, `\\+r`)
	case '\t':
		ways = append(ways, `\t`, `\\+t`)
	default:
		ways = append(ways, `\\*`+regexp.QuoteMeta(string(r)))
	}
	return "(?:" + strings.Join(ways, "|") + ")"
}

// hide replaces the form in s.
func (f form) hide(s string) string {
	if f.like == nil {
		return strings.ReplaceAll(s, f.text, hidden)
	}
	return f.like.ReplaceAllLiteralString(s, hidden)
}

// in tells whether s has the form.
func (f form) in(s string) bool {
	if f.like == nil {
		return strings.Contains(s, f.text)
	}
	return f.like.MatchString(s)
}
