package main

import (
	"bytes"
	"os"

	"gopkg.in/natefinch/lumberjack.v2"
)

// logLimit is the size in MiB at which a log begins a new file; one older file stays.
const logLimit = 16

type logFile struct {
	lumberjack.Logger

	begin int64 // where the lines of this start begin
}

func newLog(path string) *logFile {
	l := &logFile{Logger: lumberjack.Logger{Filename: path, MaxSize: logLimit, MaxBackups: 1}}
	if info, err := os.Stat(path); err == nil {
		l.begin = info.Size()
	}
	return l
}

// Write never fails: a full disk must not stop a component.
func (l *logFile) Write(b []byte) (int, error) {
	_, _ = l.Logger.Write(b)
	return len(b), nil
}

// Last is the last line of this start that is not blank, or the last 2000 bytes of it.
func (l *logFile) Last() string {
	f, err := os.Open(l.Filename)
	if err != nil {
		return "(none)"
	}
	defer release(f)
	end := make([]byte, 2000)
	if info, err := f.Stat(); err == nil {
		from := l.begin
		if info.Size() < from { // a new file
			from = 0
		}
		n, _ := f.ReadAt(end, max(from, info.Size()-int64(len(end))))
		end = bytes.TrimSpace(end[:n])
	}
	if len(end) == 0 {
		return "(none)"
	}
	return string(bytes.TrimSpace(end[bytes.LastIndexByte(end, '\n')+1:]))
}
