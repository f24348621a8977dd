package step

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
)

// redactor replaces secrets by "***". It is safe for concurrent use.
type redactor struct {
	mu    sync.RWMutex
	forms []string // longest first, so that a part never hides the whole
}

// add registers a secret in the forms in which it shows up in output: as it is,
// line by line (a key in PEM), quoted as in JSON and logs, and in base64 as in a
// Kubernetes Secret.
func (r *redactor) add(secret string) {
	if len(strings.TrimSpace(secret)) < 4 { // would blank out ordinary words
		return
	}
	forms := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))}
	if q, err := json.Marshal(secret); err == nil {
		forms = append(forms, string(q[1:len(q)-1]))
	}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			line = strings.TrimSpace(line)
			// The markers of PEM are no secret, and a short last line would
			// blank out half the log.
			if len(line) >= 8 && !strings.HasPrefix(line, "-----") {
				forms = append(forms, line)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forms = append(r.forms, forms...)
	slices.SortFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	r.forms = slices.Compact(r.forms)
}

func (r *redactor) clean(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, f := range r.forms {
		s = strings.ReplaceAll(s, f, "***")
	}
	return s
}

// holds tells whether b contains a registered secret.
func (r *redactor) holds(b []byte) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.forms, func(f string) bool { return bytes.Contains(b, []byte(f)) })
}

// maxLine is how many bytes of one line a lineWriter holds back at most.
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
		w.emit(w.buf)
		w.buf = w.buf[:0]
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
