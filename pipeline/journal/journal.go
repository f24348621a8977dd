// Package journal records every attempt at a step in the deployment's store, so that
// nothing is lost when a program is killed. Records are written atomically, and
// damaged ones are detected.
package journal

import (
	"fmt"
	"regexp"

	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// RecordError reports a key of the store that holds no usable record. One that belongs to
// another step or deployment is seal.Foreign, too.
type RecordError struct {
	File   string
	Reason seal.Reason
	Err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("journal record %s is %s: %v", e.File, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// nameRE matches the names of stages and steps, which become part of keys.
var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// Name reports whether s is a valid name for a stage or a step.
func Name(s string) bool { return nameRE.MatchString(s) }
