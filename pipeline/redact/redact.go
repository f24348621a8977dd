// Package redact removes secrets from text: known ones in every form in which they
// show up (Secrets), and whatever looks like one in text from elsewhere (Text).
package redact

import (
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Secrets is a set of known secrets that are replaced by "***" in text. The zero value
// is empty. It is safe for concurrent use.
type Secrets struct {
	mu      sync.RWMutex
	exact   index           // the forms as they are
	wrapped index           // those that are also found where they are wrapped or split
	dumped  index           // those in hexadecimal digits
	escaped map[string]form // by their texts, those that are written in other ways, too
	longest int             // the length of the longest form
}

// Add registers a secret in the forms in which it shows up in output, both with and
// without surrounding space.
func (r *Secrets) Add(secret string) {
	trimmed := strings.TrimSpace(secret)
	if len(trimmed) < 4 { // would blank out ordinary words
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []string{secret, trimmed, Printable(trimmed)} {
		if len(s) < keyBytes {
			continue
		}
		plain, encoded := formsOf(s)
		for _, text := range plain {
			if _, known := r.escaped[text]; known || !utf8.ValidString(text) || !strings.ContainsFunc(text, isEscaped) {
				continue
			}
			if r.escaped == nil {
				r.escaped = map[string]form{}
			}
			r.escaped[text] = newForm(text)
		}
		for _, text := range slices.Concat(plain, encoded) {
			r.exact.add(text)
			r.longest = max(r.longest, len(text))
			r.wrapped.addWrapped(flatten(text).text)
		}
		if len(s) >= 8 {
			r.dumped.addWrapped(hex.EncodeToString([]byte(s)))
		}
	}
}

// Redact returns s with "***" in place of every secret. If what a terminal shows of s has one, such
// as a secret with a colour in the middle, it returns that, redacted.
func (r *Secrets) Redact(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	parts := r.find(s)
	clean := replaced(s, parts)
	shown := strip(s, true)
	if shown == s {
		return clean
	}
	// One secret may begin another, which only shown has in one piece; and what strip leaves of an
	// escaped secret is not always found in shown.
	rest := strip(clean, true)
	masked := replaced(shown, r.find(shown))
	left := func(p part) bool { return strings.Contains(masked, strip(s[p.from:p.to], true)) }
	if masked != shown && masked != rest && !slices.ContainsFunc(parts, left) {
		return masked
	}
	if found := r.find(rest); len(found) > 0 {
		return replaced(rest, found)
	}
	return clean
}

// replaced is s with "***" in place of parts.
func replaced(s string, parts []part) string {
	if len(parts) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, p := range parts {
		b.WriteString(s[at:p.from])
		b.WriteString(hidden)
		at = p.to
	}
	b.WriteString(s[at:])
	return b.String()
}

// Clean returns what Plain leaves of s, with "***" in place of every secret: those in s, and
// those that s shows.
func (r *Secrets) Clean(s string) string {
	s = r.Redact(s)
	if shown := Plain(s); shown != s {
		return r.Redact(shown)
	}
	return s
}

// In reports whether b contains a registered secret.
func (r *Secrets) In(b []byte) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.find(string(b))) > 0 || len(r.find(strip(string(b), true))) > 0
}

// escapedLongest returns how many bytes the longest form of a secret takes, at least 1.
func (r *Secrets) escapedLongest() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return max(1, escapedBytes*r.longest)
}
