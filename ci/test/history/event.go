// Package history checks what contenders for a deployment's lock did, saw and wrote against
// what docs/state.md promises: of a history, which they have noted while the network failed
// and some of them died or stood still, Check tells what must not have happened.
package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Op is what is done.
type Op string

// The operations.
const (
	Take    Op = "take"    // the lock was taken: Generation, Token
	Force   Op = "force"   // the lock was broken by force: Generation is that of the record of it
	Guard   Op = "guard"   // lock.Guard let a request pass, for the holder of Generation
	Write   Op = "write"   // of the register by the holder of Generation, N
	Read    Op = "read"    // of the register: Generation and N of the write that was seen; none: zero
	Arrive  Op = "arrive"  // the network delivered that write of the register once more, or late
	End     Op = "end"     // of an attempt at Step, by Run, whose lock is of Generation: N is the output
	Release Op = "release" // of the lock of Generation
	Lose    Op = "lose"    // the lock of Generation: Error says why
	Found   Op = "found"   // in the end: an attempt of Run at Step, with output N
	Last    Op = "last"    // in the end: the last attempt at Step is of Run, with output N
	Begin   Op = "begin"   // the Nth attempt of Run at Step, whose lock is of Generation, began
	Fail    Op = "fail"    // it failed: Error is the code
	Put     Op = "put"     // the value under the key Step, which has the Generation in it, was stored last
)

// Event is one operation. Its times are nanoseconds of Now.
type Event struct {
	Op         Op     `json:"op"`
	Who        string `json:"who"`
	Call       int64  `json:"call"`             // before it began
	Return     int64  `json:"return,omitempty"` // after it had ended; 0: nobody knows whether it has
	Error      string `json:"error,omitempty"`  // it may have been done all the same
	Generation int64  `json:"generation,omitempty"`
	Token      string `json:"token,omitempty"`
	N          int    `json:"n,omitempty"`
	Run        string `json:"run,omitempty"`
	Step       string `json:"step,omitempty"`
}

// acknowledged reports whether who did it knows that it is done.
func (e Event) acknowledged() bool { return e.Return > 0 && e.Error == "" }

func (e Event) String() string {
	text, _ := json.Marshal(e) // it has no other types
	return string(text)
}

// Now is the time since this machine was started, the same for all of its processes.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read CLOCK_BOOTTIME: " + err.Error()) // every supported kernel has it
	}
	return ts.Nano()
}

// Log is a history while it is written: a file with an event in each line, all of which are
// there when the process is killed. It is safe for concurrent use.
type Log struct {
	who  string
	mu   sync.Mutex
	file *os.File
}

// Extension is that of the files of a history.
const Extension = ".jsonl"

// Create creates the log of who in a directory.
func Create(dir, who string) (*Log, error) {
	f, err := os.OpenFile(filepath.Join(dir, who+Extension), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Log{who: who, file: f}, nil
}

// Add adds an event, of who the log is of if it does not say.
func (l *Log) Add(e Event) error {
	e.Who = cmp.Or(e.Who, l.who)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.file.WriteString(e.String() + "\n")
	return err
}

// Close ends the log.
func (l *Log) Close() error { return l.file.Close() }

// Load reads the logs of a directory. A write of which the beginning and the end were noted
// is one event.
func Load(dir string) ([]Event, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+Extension))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, file := range files {
		events, err := load(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, events...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.Call, b.Call) })
	return all, nil
}

func load(file string) ([]Event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var events []Event
	begun := map[Event]int{} // where those are that have not ended
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		start := e
		start.Return, start.Error = 0, ""
		if at, ok := begun[start]; ok && e.Return > 0 {
			events[at] = e
			delete(begun, start)
			continue
		}
		if e.Return == 0 {
			begun[start] = len(events)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}
