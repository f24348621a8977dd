package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// record is the pid file: it names one process of one boot for good. A pid
// alone would not, for the kernel gives pids out again.
type record struct {
	PID     int       `json:"pid"`
	Ticks   uint64    `json:"startTicks"` // when the process began, in clock ticks since boot
	Boot    string    `json:"bootID"`
	Version string    `json:"version"` // of Dagger
	Began   time.Time `json:"began"`
	CLI     string    `json:"cli"` // path of the dagger CLI built along with it
}

// procFS reads processes; tests give another folder.
type procFS string

// newRecord describes the process pid, which must run.
func newRecord(proc procFS, pid int) (record, error) {
	ticks, err := proc.ticks(pid)
	if err != nil {
		return record{}, fmt.Errorf("describe process %d: %w", pid, err)
	}
	boot, err := proc.boot()
	if err != nil {
		return record{}, fmt.Errorf("describe process %d: %w", pid, err)
	}
	return record{PID: pid, Ticks: ticks, Boot: boot, Began: time.Now().UTC().Truncate(time.Second)}, nil
}

// alive reports whether the very process of the record still runs.
func (r record) alive(proc procFS) bool {
	if r.PID <= 1 {
		return false
	}
	boot, err := proc.boot()
	if err != nil || boot != r.Boot {
		return false
	}
	ticks, err := proc.ticks(r.PID)
	return err == nil && ticks == r.Ticks
}

// ticks is the start time of a process. A zombie counts as gone.
func (proc procFS) ticks(pid int) (uint64, error) {
	fields, err := proc.stat(pid)
	if err != nil {
		return 0, err
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// state is the letter for what a process does, such as D for one that waits for
// a disk, or why it cannot be told.
func (proc procFS) state(pid int) string {
	fields, err := proc.stat(pid)
	if err != nil {
		return err.Error()
	}
	return fields[0]
}

// stat is what the kernel tells about a process, from its state on.
func (proc procFS) stat(pid int) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(string(proc), strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil, err
	}
	// The second field is the command in brackets, which may hold anything.
	_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return nil, fmt.Errorf("process %d: stat has %d fields", pid, len(fields)+2)
	}
	return fields, nil
}

func (proc procFS) boot() (string, error) {
	b, err := os.ReadFile(filepath.Join(string(proc), "sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(b)), err
}

// readRecord reads a pid file; ok is false when there is none.
func readRecord(path string) (r record, ok bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("read the pid file: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, false, fmt.Errorf("read the pid file %s: %w", path, err)
	}
	return r, true, nil
}

// write puts the record in place in one step.
func (r record) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the pid file: %w", err)
	}
	if err := atomicfile.Write(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the pid file: %w", err)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
