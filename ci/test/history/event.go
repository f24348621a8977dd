// Package history checks what runs that contended for a deployment's lock have recorded against
// what docs/state.md promises: of a history, made of the records of its state, Check tells what
// must not have happened.
package history

import "encoding/json"

// Op is what is done.
type Op string

// The operations.
const (
	Take    Op = "take"    // the lock was taken: Generation
	Force   Op = "force"   // the lock was broken by force: Generation is that of the record of it
	End     Op = "end"     // of an attempt at Step, by Run, whose lock is of Generation: N is the output
	Release Op = "release" // of the lock of Generation
	Found   Op = "found"   // in the end: an attempt of Run at Step, with output N
	Last    Op = "last"    // in the end: the last attempt at Step is of Run, with output N
	Begin   Op = "begin"   // the Nth attempt of Run at Step, whose lock is of Generation, began
	Fail    Op = "fail"    // it failed: Error is the code
	Put     Op = "put"     // the value under the key Step, which has the Generation in it, was stored last
)

// Event is one operation.
type Event struct {
	Op         Op     `json:"op"`
	At         int64  `json:"at"` // nanoseconds since 1970
	Error      string `json:"error,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	N          int    `json:"n,omitempty"`
	Run        string `json:"run,omitempty"`
	Step       string `json:"step,omitempty"`
}

func (e Event) String() string {
	text, _ := json.Marshal(e) // it has no other types
	return string(text)
}
