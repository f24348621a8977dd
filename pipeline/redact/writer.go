package redact

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxLine limits how many bytes of one line a LineWriter buffers, apart from what may
// be the beginning of a secret.
const maxLine = 64 << 10

// LineWriter writes whole lines to dst, redacted and printable, so that a secret which is split
// over two writes is still found. Lines at whose end a secret may begin, which is wrapped, wait
// for the next one. Flush writes the rest. It is safe for concurrent use.
type LineWriter struct {
	secrets *Secrets
	dst     io.Writer

	mu   sync.Mutex
	buf  []byte
	held int // how much of buf are lines that wait
	work int // how many bytes were looked at
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
	// In parts, so that each byte is looked at a few times, however much is written at once.
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxLine)
		if end := bytes.LastIndexByte(rest[:n], '\n'); end >= 0 {
			n = end + 1
		}
		w.take(rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

func (w *LineWriter) take(p []byte) {
	w.buf = append(w.buf, p...)
	w.work += len(p)
	switch {
	case p[len(p)-1] != '\n':
	case w.held > 0 && !continues(w.buf[w.held:]): // what waits waits for more
		w.held = len(w.buf)
	default:
		w.work += len(w.buf)
		n := w.secrets.whole(w.buf)
		w.emit(string(w.buf[:n]))
		w.buf = append(w.buf[:0], w.buf[n:]...)
		w.held = len(w.buf)
	}
	// At least half of what is looked at then is written.
	if keep := w.secrets.escapedLongest(); len(w.buf) > max(maxLine, 2*keep) {
		w.work += len(w.buf)
		clean := w.secrets.Redact(string(w.buf)) // its end may be the beginning of a secret
		cut := 0
		for cut < len(clean)-keep {
			end, _ := unit(clean, cut, false)
			if end > len(clean)-keep {
				break
			}
			cut = end
		}
		w.emit(clean[:cut])
		w.buf = append(w.buf[:0], clean[cut:]...)
		w.held = 0
	}
}

// Flush writes an incomplete line and ends it.
func (w *LineWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		if w.buf[len(w.buf)-1] != '\n' {
			w.buf = append(w.buf, '\n')
		}
		w.emit(string(w.buf))
		w.buf, w.held = w.buf[:0], 0
	}
}

func (w *LineWriter) emit(text string) {
	if text != "" {
		w.work += len(text)
		_, _ = io.WriteString(w.dst, w.secrets.Clean(text))
	}
}

// Printer writes what Printable leaves of the text that others wrote. What may be the beginning
// of a sequence waits for the next write. It is safe for concurrent use.
type Printer struct {
	dst io.Writer

	mu   sync.Mutex
	rest []byte
}

// NewPrinter returns a writer to dst of what is printable.
func NewPrinter(dst io.Writer) *Printer { return &Printer{dst: dst} }

func (p *Printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(append(p.rest, b...))
	cut := begun(text)
	shown, held := Printable(text[:cut]), ""
	if logsCommand() {
		if at := begunCommand.FindStringIndex(shown); at != nil {
			shown, held = shown[:at[0]], shown[at[0]:]
		}
	}
	p.rest = append(append(p.rest[:0], held...), text[cut:]...)
	if shown != "" {
		if _, err := io.WriteString(p.dst, shown); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// begun returns where the end of s is the beginning of a character or of a sequence; len(s) if
// it is of none.
func begun(s string) int {
	const most = 256
	for i := max(0, len(s)-utf8.UTFMax); i < len(s); i++ {
		if utf8.RuneStart(s[i]) && !utf8.FullRuneInString(s[i:]) {
			return i
		}
	}
	at := max(strings.LastIndexByte(s, '\x1b'), strings.LastIndex(s, "\u009b"), strings.LastIndex(s, "\u009d"))
	if at < max(0, len(s)-most) || strings.IndexByte(s[at:], '\n') >= 0 {
		return len(s)
	}
	end, _ := unit(s, at, false)
	_, size := utf8.DecodeRuneInString(s[at:])
	if strings.HasPrefix(s[at:], "\x1b[") {
		size = 2
	}
	if end == at+size || end == len(s) {
		return at
	}
	return len(s)
}
