package lock

import (
	"errors"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// The codes of the lock's faults.
const (
	// CodeHeld: another run works on the deployment; the error names the
	// holder, when the lock was taken, and the last heartbeat.
	CodeHeld fault.Code = "LOK-001"
	// CodeLost: the deployment's lock was lost during the run: it was broken by
	// force, or its holder gave no sign of life in time and others may have taken
	// it over. The run was stopped.
	CodeLost fault.Code = "LOK-002"
	// CodeNotLocked: the lock cannot be broken: nobody holds it.
	CodeNotLocked fault.Code = "LOK-004"
	// CodeRelease: the work is done, but the lock could not be released: the
	// error includes the store's, or says that something still works under it, or
	// that what holds it does not end.
	CodeRelease fault.Code = "LOK-005"
	// CodeNoLock: the store overwrites a value that it was asked to create only
	// if absent, so it cannot exclude a second run.
	CodeNoLock fault.Code = "LOK-006"
)

// held is the fault of a lock that the holder of r has.
func (l *Lock) held(r Record) error {
	return Refused(fmt.Errorf("%s has had the lock since %s; last sign of life %s",
		r.Holder, r.Acquired.Format(time.RFC3339), ago(l.opts.Clock(), r.Beat)))
}

// unreadable is the fault of a record that cannot be read. Acquire takes over from whoever wrote it.
func (l *Lock) unreadable(generation int64, err error) error {
	return &fault.Fault{Code: store.CodeDamaged, Class: fault.Preflight, Op: "read the deployment's lock, " + key(generation), Err: err,
		Fix: "replace it, if no other run works on the deployment: slipway unlock --force"}
}

// Refused is the fault of a command that needs the lock while somebody else has it; err says who.
func Refused(err error) error {
	return &fault.Fault{Code: CodeHeld, Class: fault.Locked, Op: "take the deployment's lock", Err: err,
		Fix: "wait until that run has ended; the lock of a run that is gone expires by itself. Only if it hangs and cannot be stopped: slipway unlock --force"}
}

func lost(format string, args ...any) error {
	return &fault.Fault{Code: CodeLost, Class: fault.Locked, Op: "hold the deployment's lock", Err: fmt.Errorf(format, args...),
		Fix: "check that no other run works on the deployment (slipway runs), then run the same command again"}
}

// errWorks is why a lock is left to expire.
var errWorks = errors.New("something still works under it")

func notReleased(r Record, err error) error {
	return &fault.Fault{Code: CodeRelease, Class: fault.Step, Op: "release the deployment's lock", Err: err,
		Fix: fmt.Sprintf("nothing; the next run can take it after %s", r.over())}
}

func unconditional(r Record) error {
	return &fault.Fault{Code: CodeNoLock, Class: fault.Preflight, Op: "take the deployment's lock",
		Err: fmt.Errorf("%s was created a second time", key(r.Generation)),
		Fix: "use a store that honours If-None-Match on writes, as AWS S3 does; docs/state.md has more"}
}
