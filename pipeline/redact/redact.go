// Package redact removes secrets from text: known ones in every form in which they
// show up (Secrets), and whatever looks like one in text from elsewhere (Text).
package redact

import (
	"slices"
	"strings"
	"sync"
)

// Secrets is a set of known secrets that are replaced by "***" in text. The zero value
// is empty. It is safe for concurrent use.
type Secrets struct {
	mu    sync.RWMutex
	forms []form // longest first, so that a part never hides the whole
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
	for _, text := range slices.Concat(formsOf(secret), formsOf(trimmed)) {
		if !slices.ContainsFunc(r.forms, func(f form) bool { return f.text == text }) {
			r.forms = append(r.forms, newForm(text))
		}
	}
	slices.SortStableFunc(r.forms, func(a, b form) int { return len(b.text) - len(a.text) })
}

// Redact returns s with "***" in place of every secret.
func (r *Secrets) Redact(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, f := range r.forms {
		s = f.hide(s)
	}
	return s
}

// longest returns the length of the longest form of a secret, at least 1.
func (r *Secrets) longest() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.forms) == 0 {
		return 1
	}
	return escapedBytes * len(r.forms[0].text)
}

// In reports whether b contains a registered secret.
func (r *Secrets) In(b []byte) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.forms, func(f form) bool { return f.in(string(b)) })
}
