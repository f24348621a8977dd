package redact

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
)

// hidden replaces secrets.
const hidden = "***"

// form is a form that is escaped in some outputs.
type form struct {
	like *regexp.Regexp // matches all its variants
	only string         // a variant that differs from the text has one of these bytes
}

// escapedBytes is how many bytes one byte of a form takes in output when escaped, in
// all but contrived encodings.
const escapedBytes = 12

// formsOf returns the forms of a secret. Plain are those that may be escaped: as it is, line
// by line (a key in PEM), and in base64, as in a Kubernetes Secret and, together with other
// text, in HTTP's basic authentication. Encoded are the others: twice in base64, as credentials
// of a registry in a Kubernetes Secret; of a short one, in base64 with a line break, and without
// padding.
func formsOf(secret string) (plain, encoded []string) {
	plain = []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			line = strings.TrimSpace(line)
			// PEM markers are not secret, and a short last line would blank
			// out half the log.
			if len(line) >= 8 && !strings.HasPrefix(line, "-----") {
				plain = append(plain, line)
			}
		}
	}
	if len(secret) < 8 { // the encoded core of a shorter one also occurs in ordinary words
		for _, text := range []string{secret, secret + "\n"} { // as echo writes it
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				encoded = append(encoded, e.EncodeToString([]byte(text)))
			}
		}
		return plain, encoded
	}
	inner := []string{plain[1]}
	for before := range 3 {
		core := encodedCore(base64.RawStdEncoding, before, secret)
		plain = append(plain, core, encodedCore(base64.RawURLEncoding, before, secret))
		inner = append(inner, core)
	}
	for _, code := range inner {
		for before := range 3 {
			encoded = append(encoded, encodedCore(base64.RawStdEncoding, before, code), encodedCore(base64.RawURLEncoding, before, code))
		}
	}
	return plain, encoded
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

// newForm returns the form for a text with characters that may be escaped, with its variants in
// JSON, in JSON within JSON, in logs, in URLs, in HTML and in a shell's quotes.
func newForm(text string) form {
	f := form{only: `\%&`}
	for c, marks := range map[string]string{" ": "+", "\n": "\r", "'": "'", `"`: `"`} {
		if strings.Contains(text, c) {
			f.only += marks
		}
	}
	var b strings.Builder
	last := rune(0)
	for _, r := range text {
		if r == '\\' && r == last {
			continue // one stands for any number, and a match takes as long as there are alternatives
		}
		last = r
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
	var percent, unicode, bytes strings.Builder
	for _, c := range []byte(string(r)) {
		fmt.Fprintf(&percent, `%%(?:25)*%02x`, c)
		fmt.Fprintf(&bytes, `\\+(?:x%02x|0?%03o)`, c, c)
	}
	for _, c := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&unicode, `\\+u%04x`, c)
	}
	ways := []string{fmt.Sprintf(`(?i:%s|%s|%s|\\+[xu]\{?0*%x\}?)`, &percent, &unicode, &bytes, r)}
	ways = append(ways, fmt.Sprintf(`(?i:\\*&(?:amp;)*#(?:0*%d|x0*%x);)`, r, r))
	// The characters that HTML has names for and that are escaped in it.
	if name := map[rune]string{'&': "amp", '<': "lt", '>': "gt", '"': "quot", '\'': "apos"}[r]; name != "" {
		ways = append(ways, `\\*&(?:amp;)*`+name+`;`)
	}
	switch r {
	case '\\':
		ways = append(ways, `\\+`)
	case ' ':
		ways = append(ways, `\\* `, `\+`)
	case '\'':
		ways = append(ways, `'(?:\\+'|"'")'`, `''`, `\\*'`) // a shell's quotes end, and begin again
	case '"':
		ways = append(ways, `""`, `\\*"`) // in a table
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

// find returns where the form's variants are in s.
func (f form) find(s string) []part {
	if !strings.ContainsAny(s, f.only) {
		return nil
	}
	var found []part
	for _, at := range f.like.FindAllStringIndex(s, -1) {
		found = append(found, part{at[0], at[1]})
	}
	return found
}
