package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type record struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"` // of Dagger
	Began   time.Time `json:"began"`
	CLI     string    `json:"cli"` // path of the dagger CLI built along with it
}

// alive reports whether the process of the record still runs. The kernel gives pids out again, so
// the command line has to be an engine's. A process has no command line in its first moment, nor
// after it ended while its parent has not collected it.
func (r record) alive() bool {
	for range 20 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID))
		if err != nil || len(text) > 0 {
			return slices.Contains(strings.Split(string(text), "\x00"), insideCommand)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// readRecord reads a pid file; the zero value when there is none.
func readRecord(path string) (r record, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("read the pid file %s: %w", path, err)
	}
	return r, nil
}

func (r record) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = atomicfile.Write(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the pid file: %w", err)
	}
	return nil
}
