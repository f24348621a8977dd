package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/fault"
)

// HoldPort is where a program that Hold runs listens once it holds the lock.
const HoldPort = 6480

// FaultLine begins the line of standard error in which such a program reports, as JSON, why
// it does not hold the lock.
const FaultLine = "slipway-fault: "

// Hold is a service that holds the deployment's lock: it has it from Start to
// Stop, or to the end of the Dagger session, which ends it too when the program
// that opened the session is killed.
type Hold struct{ service *dagger.Service }

// Hold describes the service; args is the command line of a program that takes the lock,
// listens on HoldPort, and releases the lock on SIGTERM.
func (d *Deployment) Hold(args ...string) *Hold {
	ctr := fresh(d.runner(nil)).WithExposedPort(HoldPort)
	return &Hold{ctr.AsService(dagger.ContainerAsServiceOpts{Args: args})}
}

// Start returns once the lock is held. The error is the fault that the program
// told, such as that somebody else holds the lock.
func (h *Hold) Start(ctx context.Context) error {
	_, err := h.service.Start(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return notHeld(err)
}

// Stop releases the lock. It returns once what holds it has ended.
func (h *Hold) Stop(ctx context.Context) error {
	if _, err := h.service.Stop(ctx); err != nil {
		return fmt.Errorf("what holds the deployment's lock does not end: %w", err)
	}
	return nil
}

// Kill ends what holds the lock, which it does not release: that was lost. It may stand still,
// so that it is not asked to end.
func (h *Hold) Kill(ctx context.Context) error {
	_, err := h.service.Stop(ctx, dagger.ServiceStopOpts{Kill: true})
	return err
}

// WriteFault writes the fault that err holds for the conductor, which started this
// program in a container.
func WriteFault(w io.Writer, err error) {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return
	}
	if text, jsonErr := json.Marshal(f); jsonErr == nil {
		fmt.Fprintf(w, "%s%s\n", FaultLine, text)
	}
}

// ParseFault is the fault that a program told in a line that begins with FaultLine;
// nil when text has none.
func ParseFault(text string) *fault.Fault {
	for line := range strings.Lines(text) {
		_, rest, ok := strings.Cut(line, FaultLine)
		if !ok {
			continue
		}
		var f fault.Fault
		if json.NewDecoder(strings.NewReader(rest)).Decode(&f) == nil {
			return &f
		}
	}
	return nil
}

// withStderr puts what a service's program said last into the error of its start.
func withStderr(err error) error {
	x, ok := errors.AsType[*dagger.ExecError](err)
	if !ok || strings.TrimSpace(x.Stderr) == "" {
		return err
	}
	return fmt.Errorf("%w:\n%s", err, tail(strings.TrimSpace(x.Stderr), 2000))
}

func notHeld(err error) error {
	if f := ParseFault(withStderr(err).Error()); f != nil {
		return f
	}
	return NotHeld("take the deployment's lock", err)
}

// NotHeld is err, as a fault of op if it is none: what has to be done to begin under the lock.
func NotHeld(op string, err error) error {
	if _, coded := errors.AsType[*fault.Fault](err); coded {
		return err
	}
	return &fault.Fault{
		Code: codeLost, Class: fault.Step, Op: op, Err: err,
		Fix: "look at the engine's log, then run the same command again",
	}
}
