package step

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// redactor replaces secrets by "***". It is safe for concurrent use.
type redactor struct {
	mu    sync.RWMutex
	forms []form // longest first, so that a part never hides the whole
}

// add registers a secret in the forms in which it shows up in output, with the
// space around it and without.
func (r *redactor) add(secret string) {
	trimmed := strings.TrimSpace(secret)
	if len(trimmed) < 4 { // would blank out ordinary words
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range slices.Concat(written(secret), written(trimmed)) {
		if !slices.ContainsFunc(r.forms, func(f form) bool { return f.text == text }) {
			r.forms = append(r.forms, newForm(text))
		}
	}
	slices.SortStableFunc(r.forms, func(a, b form) int { return len(b.text) - len(a.text) })
}

func (r *redactor) clean(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, f := range r.forms {
		s = f.hide(s)
	}
	return s
}

// longest is the length of the longest form of a secret, at least 1.
func (r *redactor) longest() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.forms) == 0 {
		return 1
	}
	return escaped * len(r.forms[0].text)
}

// holds tells whether b contains a registered secret.
func (r *redactor) holds(b []byte) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.forms, func(f form) bool { return f.in(string(b)) })
}

// maxLine is how many bytes of one line a lineWriter holds back at most, beside
// what may be the beginning of a secret.
const maxLine = 64 << 10

// lineWriter hands whole lines to dst, redacted: a secret that is split over two
// writes is still found. Flush hands on the rest. It is safe for concurrent use.
type lineWriter struct {
	r   *redactor
	dst io.Writer

	mu  sync.Mutex
	buf []byte
}

// Write never gives back an error of dst: a full disk must not change what a
// tool does half-way. The result file, written last, reports it.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if i := bytes.LastIndexByte(w.buf, '\n'); i >= 0 {
		w.emit(w.buf[:i+1])
		w.buf = append(w.buf[:0], w.buf[i+1:]...)
	}
	if len(w.buf) > maxLine {
		// The beginning of a secret may stand at the end.
		clean := w.r.clean(string(w.buf))
		cut := max(0, len(clean)-w.r.longest()+1)
		_, _ = io.WriteString(w.dst, clean[:cut])
		w.buf = append(w.buf[:0], clean[cut:]...)
	}
	return len(p), nil
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		w.emit(append(w.buf, '\n'))
		w.buf = w.buf[:0]
	}
}

func (w *lineWriter) emit(b []byte) { _, _ = io.WriteString(w.dst, w.r.clean(string(b))) }

// shared lets several writers use dst.
type shared struct {
	mu  sync.Mutex
	dst io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dst.Write(p)
}
