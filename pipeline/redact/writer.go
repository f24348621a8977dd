package redact

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is how many bytes of one line a LineWriter holds back at most, beside
// what may be the beginning of a secret.
const maxLine = 64 << 10

// LineWriter hands whole lines to dst, redacted: a secret that is split over two
// writes is still found. Flush hands on the rest. It is safe for concurrent use.
type LineWriter struct {
	secrets *Secrets
	dst     io.Writer

	mu  sync.Mutex
	buf []byte
}

// NewLineWriter returns a writer to dst that redacts secrets.
func NewLineWriter(secrets *Secrets, dst io.Writer) *LineWriter {
	return &LineWriter{secrets: secrets, dst: dst}
}

// Write never gives back an error of dst: a full disk must not change what a
// tool does half-way. The result file, written last, reports it.
func (w *LineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if i := bytes.LastIndexByte(w.buf, '\n'); i >= 0 {
		w.emit(w.buf[:i+1])
		w.buf = append(w.buf[:0], w.buf[i+1:]...)
	}
	if len(w.buf) > maxLine {
		// The beginning of a secret may stand at the end.
		clean := w.secrets.Redact(string(w.buf))
		cut := max(0, len(clean)-w.secrets.longest()+1)
		_, _ = io.WriteString(w.dst, clean[:cut])
		w.buf = append(w.buf[:0], clean[cut:]...)
	}
	return len(p), nil
}

// Flush hands on a line that has no end yet, and ends it.
func (w *LineWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		w.emit(append(w.buf, '\n'))
		w.buf = w.buf[:0]
	}
}

func (w *LineWriter) emit(b []byte) { _, _ = io.WriteString(w.dst, w.secrets.Redact(string(b))) }
