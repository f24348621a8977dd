package lock

import (
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// The codes of the lock's faults.
const (
	// CodeHeld: another run works on the deployment; the error says whose it is,
	// since when, and when it last gave a sign of life.
	// Remedy: wait until it has ended; if it is gone for good:
	// `slipway unlock --force --reason '…'`
	CodeHeld fault.Code = "LOK-001"
	// CodeLost: the run lost the deployment's lock while it worked: somebody took it
	// away, or no sign of life could be given in time.
	// Remedy: see that no other run works on the deployment (`slipway runs`), then
	// run the same command again.
	CodeLost fault.Code = "LOK-002"
	// CodeNoReason: the lock is to be taken away, and no reason is given.
	// Remedy: give one, it is recorded: `slipway unlock --reason '…'`
	CodeNoReason fault.Code = "LOK-003"
	// CodeNotLocked: the lock is to be taken away, and nobody holds it.
	// Remedy: nothing is to be done.
	CodeNotLocked fault.Code = "LOK-004"
	// CodeRelease: the lock could not be given up at the end of a run.
	// Remedy: nothing: it expires by itself; or `slipway unlock --force --reason '…'`
	CodeRelease fault.Code = "LOK-005"
)

// HeldError says who holds the lock.
type HeldError struct {
	Record Record
	age    string // of its heartbeat
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s has had the lock since %s; last sign of life %s",
		e.Record.Holder, e.Record.Acquired.Format(time.RFC3339), e.age)
}

func (l *Lock) held(r Record) error {
	return &fault.Fault{Code: CodeHeld, Class: fault.Locked, Op: "take the deployment's lock",
		Err: &HeldError{r, ago(l.opts.Clock(), r.Beat)},
		Fix: "wait until that run has ended; if it is gone for good: slipway unlock --force --reason '…'"}
}

func lost(format string, args ...any) error {
	return &fault.Fault{Code: CodeLost, Class: fault.Locked, Op: "keep the deployment's lock", Err: fmt.Errorf(format, args...),
		Fix: "see that no other run works on the deployment (slipway runs), then run the same command again"}
}

func notReleased(r Record, err error) error {
	return &fault.Fault{Code: CodeRelease, Class: fault.Step, Op: "give the deployment's lock up", Err: err,
		Fix: fmt.Sprintf("nothing; others can take it after %s, or at once after: slipway unlock --force --reason '…'", r.ttl())}
}
