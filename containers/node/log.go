package main

import (
	"bytes"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
)

// logLimit is the size in MiB at which a log begins a new file; one older file stays.
const logLimit = 16

// logFile is a log with a limited size that remembers its last line.
type logFile struct {
	file lumberjack.Logger

	mu   sync.Mutex
	last []byte // the last complete line
	rest []byte // what followed it
}

func newLog(path string) *logFile {
	return &logFile{file: lumberjack.Logger{Filename: path, MaxSize: logLimit, MaxBackups: 1}}
}

// Write never fails: a full disk must not stop a component.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(b)
	_, _ = l.file.Write(b)
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
