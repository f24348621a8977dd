package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// logLimit is the size in bytes at which a log is moved to <name>.1, over the
// one before.
const logLimit = 16 << 20

// logFile is a log with a limited size that remembers its last line.
type logFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File // nil once closed
	size int64
	last []byte // the last complete line
	rest []byte // what followed it
}

func openLog(path string, limit int64) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the log directory: %w", err)
	}
	l := &logFile{path: path, limit: limit}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open a log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		release(f)
		return fmt.Errorf("open a log: %w", err)
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write never fails: a full disk must not stop a component.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(b)
	if l.file == nil {
		return len(b), nil
	}
	if l.size > 0 && l.size+int64(len(b)) > l.limit {
		release(l.file)
		l.file = nil
		if os.Rename(l.path, l.path+".1") != nil || l.open() != nil {
			return len(b), nil
		}
	}
	n, _ := l.file.Write(b)
	l.size += int64(n)
	return len(b), nil
}

// remember keeps the last line that is not blank, at most 2000 bytes of it.
func (l *logFile) remember(b []byte) {
	lines := bytes.Split(append(l.rest, b...), []byte("\n"))
	for _, line := range lines[:len(lines)-1] {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.last = bytes.Clone(line[:min(len(line), 2000)])
		}
	}
	rest := lines[len(lines)-1]
	l.rest = bytes.Clone(rest[:min(len(rest), 2000)])
}

// Last is the last line that was written.
func (l *logFile) Last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(bytes.TrimSpace(l.rest)) > 0:
		return string(bytes.TrimSpace(l.rest))
	case len(l.last) > 0:
		return string(l.last)
	}
	return "(none)"
}

// Close ends the file; what still comes is only remembered.
func (l *logFile) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		release(l.file)
		l.file = nil
	}
}
