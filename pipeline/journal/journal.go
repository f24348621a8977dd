// Package journal keeps how each attempt at a step went, in the deployment's
// store, so that nothing is lost when the programs around it are killed. A record
// is there completely or not at all, and one that was damaged is noticed.
package journal

import (
	"fmt"
	"regexp"
)

// Reason says why a record cannot be used.
type Reason string

// The reasons.
const (
	Torn    Reason = "torn"    // incomplete or altered: its checksum does not match
	Foreign Reason = "foreign" // of another step, or of a program that writes other records
)

// RecordError is a key of the store that holds no usable record.
type RecordError struct {
	File   string
	Reason Reason
	Err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("journal record %s is %s: %v", e.File, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// nameRE is what names of stages and steps are made of: they are in keys.
var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// Name tells whether s can name a stage or a step.
func Name(s string) bool { return nameRE.MatchString(s) }
