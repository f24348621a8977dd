package redact

import (
	"io"
	"sync"
)

// maxLine limits how many bytes of one line a LineWriter buffers, apart from what may
// be the beginning of a secret.
const maxLine = 64 << 10

// LineWriter writes whole lines to dst, redacted, so that a secret which is split over
// two writes is still found. Lines at whose end a secret may begin, which is wrapped, wait for
// the next one. Flush writes the rest. It is safe for concurrent use.
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

// Write never returns an error of dst: a full disk must not stop a tool half-way. It
// shows when the result file is written last.
func (w *LineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if n := w.secrets.whole(w.buf); n > 0 {
		w.emit(w.buf[:n])
		w.buf = append(w.buf[:0], w.buf[n:]...)
	}
	if len(w.buf) > maxLine {
		// The end may be the beginning of a secret.
		clean := w.secrets.Redact(string(w.buf))
		cut := max(0, len(clean)-w.secrets.escapedLongest()+1)
		_, _ = io.WriteString(w.dst, clean[:cut])
		w.buf = append(w.buf[:0], clean[cut:]...)
	}
	return len(p), nil
}

// Flush writes an incomplete line and ends it.
func (w *LineWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		w.emit(append(w.buf, '\n'))
		w.buf = w.buf[:0]
	}
}

func (w *LineWriter) emit(b []byte) { _, _ = io.WriteString(w.dst, w.secrets.Redact(string(b))) }
