package redact

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden replaces secrets.
const hidden = "***"

// form is one form in which a secret shows up in output, including escaped variants.
type form struct {
	text string
	like *regexp.Regexp // matches escaped variants; nil if nothing in text is ever escaped
}

// escapedBytes is how many bytes one byte of a form takes in output when escaped, in
// all but contrived encodings.
const escapedBytes = 12

// formsOf returns the forms of a secret: as it is; in base64, as in a Kubernetes
// Secret and, together with other text, in HTTP's basic authentication; and line
// by line (a key in PEM).
func formsOf(secret string) []string {
	all := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))}
	if len(secret) >= 8 { // the encoded core of a shorter one also occurs in ordinary words
		for before := range 3 {
			all = append(all, encodedCore(base64.RawStdEncoding, before, secret), encodedCore(base64.RawURLEncoding, before, secret))
		}
	}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			line = strings.TrimSpace(line)
			// PEM markers are not secret, and a short last line would blank
			// out half the log.
			if len(line) >= 8 && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	return all
}

// encodedCore returns the part of a longer text's encoding that depends on secret
// alone, where secret follows before bytes (modulo 3) of other text.
func encodedCore(e *base64.Encoding, before int, secret string) string {
	code := e.EncodeToString(append(make([]byte, before), secret...))
	if (before+len(secret))%3 > 0 {
		code = code[:len(code)-1] // shared with the text that follows
	}
	if before > 0 {
		code = code[before+1:] // these belong to the text before, the last one in part
	}
	return code
}

// newForm returns the form for text, with its variants in JSON, in JSON within JSON, in
// logs and in URLs.
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

// isEscaped reports whether r may be escaped in output.
func isEscaped(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.~", r)
}

// escapes returns a regular expression for all ways in which r is written.
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

// in reports whether s contains the form.
func (f form) in(s string) bool {
	if f.like == nil {
		return strings.Contains(s, f.text)
	}
	return f.like.MatchString(s)
}
