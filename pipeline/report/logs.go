package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// How much of the logs the page includes at most, in bytes: of each, and of all.
const (
	logLimit  = 128 << 10
	logsLimit = 8 << 20
)

// logText is a log as the page shows it. If it is too long, its middle is left out.
type logText struct {
	Head, Tail string // Tail is empty unless something was left out
	Cut        int64  // bytes between them
	Err        string // why there is no text
}

func readLog(root *os.Root, name string, limit int) (*logText, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	if info.Size() <= int64(limit) {
		text, err := io.ReadAll(io.LimitReader(f, int64(limit)))
		return &logText{Head: redact.Plain(string(text))}, err
	}
	// The end shows why something failed, the beginning what was attempted.
	head, tail := make([]byte, limit/4), make([]byte, limit-limit/4)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	return &logText{
		Head: redact.Plain(string(head)), Tail: redact.Plain(string(tail)),
		Cut: info.Size() - int64(len(head)+len(tail)),
	}, nil
}

// Last returns the last n lines of the log.
func (l *logText) Last(n int) string {
	text := l.Tail
	if text == "" {
		text = l.Head
	}
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
