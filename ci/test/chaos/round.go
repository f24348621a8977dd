package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
)

// round is one disturbed install.
type round struct {
	*deployment
	kind      kind
	at        string        // the step whose beginning is waited for; empty for the install's
	moment    time.Duration // after that beginning
	pause     time.Duration // for which something is done
	random    *rand.Rand
	log       string // beginning of the files' names
	reference reference

	began time.Time // the removal before the install
	said  []*said   // by the installs since then
}

// seen is what a round showed.
type seen struct {
	during   string // what ran at the moment, what was done, and how the install ended
	reused   int    // steps that had succeeded and were not repeated
	attempts int    // at steps, which the records tell of
	runs     int    // that had the lock, as the records tell
}

// running is an install that goes on.
type running struct {
	process *os.Process
	said    *said
	gone    chan struct{} // closed when it has ended
	err     error         // how; read after gone
}

// outcome is how an install has ended, in a few words.
func (i *running) outcome() string {
	if i.err == nil {
		return "it succeeded"
	}
	return strings.TrimSpace(fmt.Sprintf("it ended with %d %s", status(i.err), i.said.fault()))
}

// unreleased is whether an install has done its work and could not release its lock. It is called
// once the install has ended.
func (i *running) unreleased() bool { return i.said.fault() == string(lock.CodeRelease) }

// replays is how often a round is played again because the install was over too early.
const replays = 8

// play runs the round.
func (r *round) play(ctx context.Context) (seen, error) {
	var s seen
	for n := 0; ; n++ {
		r.began, r.said = time.Now(), nil
		if err := r.run(r.log+".log", r.destroy(ctx)); err != nil {
			return s, err
		}
		during, err := r.disturb(ctx)
		s.during = during
		if !errors.Is(err, errGone) {
			if err != nil {
				return s, err
			}
			break
		}
		if n == replays {
			return s, fmt.Errorf("%d installs in a row were over before they could be disturbed", n+1)
		}
		r.moment /= 2 // this install was faster than the reference, or over before it had to notice
	}
	var err error
	s.reused, err = r.resume(ctx)
	got, factsErr := r.facts(ctx)
	if factsErr == nil {
		factsErr = r.reference.facts.Compare(got)
	}
	err = errors.Join(err, factsErr, r.history(ctx, &s))
	return s, err
}

// endLimit is how long an install may go on after it was disturbed.
const endLimit = 15 * time.Minute

// disturb installs and does the round's deed at its moment. It returns once the
// install has ended.
func (r *round) disturb(ctx context.Context) (during string, err error) {
	inst, err := r.start(ctx)
	if err != nil {
		return "", err
	}
	if r.at != "" {
		err = until(ctx, inst, inst.said.begun)
	}
	if err == nil {
		err = until(ctx, inst, time.After(r.moment))
	}
	if err != nil {
		return "", err
	}
	at := inst.said.at()
	what, err := r.kind.do(r, ctx, inst)
	if err == nil {
		select {
		case <-inst.gone:
		case <-time.After(endLimit):
			err = fmt.Errorf("the install goes on %s later", endLimit)
		}
	}
	if err != nil {
		_ = inst.process.Kill()
		<-inst.gone
		return at, err
	}
	during = strings.TrimSpace(at+" "+what) + ", " + inst.outcome()
	if r.kind.ended == nil {
		return during, nil
	}
	return during, r.kind.ended(inst)
}

// until returns once there is something on a channel; errGone if the install is over before.
func until[T any](ctx context.Context, inst *running, there <-chan T) error {
	select {
	case <-there:
		return nil
	case <-inst.gone:
		return errGone
	case <-ctx.Done():
		<-inst.gone
		return context.Cause(ctx)
	}
}

// start starts an install whose output goes to the round's log.
func (r *round) start(ctx context.Context) (*running, error) {
	log, err := os.OpenFile(r.log+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	cmd := r.install(ctx)
	inst := &running{gone: make(chan struct{}), said: r.hear()}
	cmd.Stdout = io.MultiWriter(log, inst.said)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the install: %w", err), log.Close())
	}
	inst.process = cmd.Process
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w, see %s", err, log.Name())
		}
		inst.err = err
		_ = log.Close()
		close(inst.gone)
	}()
	return inst, nil
}

// hear returns what takes the output of one more install of the round.
func (r *round) hear() *said {
	s := &said{reference: r.reference.facts, awaited: r.at, begun: make(chan struct{})}
	r.said = append(r.said, s)
	return s
}

// installs is run for an install.
func (r *round) installs(log string, cmd *exec.Cmd) error { return r.run(log, cmd, r.hear()) }

// wait returns after the round's pause, or once the install has ended.
func (r *round) wait(ctx context.Context, inst *running) {
	select {
	case <-time.After(r.pause):
	case <-inst.gone:
	case <-ctx.Done():
	}
}

// dies is the end of an install whose own process was killed.
func dies(inst *running) error {
	if inst.err == nil {
		return errGone // before it noticed
	}
	return nil
}

// fails is the end of an install that cannot go on.
func fails(inst *running) error {
	if inst.err == nil {
		return errGone
	}
	return coded(inst)
}

// either is the end of an install that may go on, or fail.
func either(inst *running) error {
	if inst.err == nil {
		return nil
	}
	return coded(inst)
}

// coded is nil if an install has failed as one must: with a code, and not for a bug or for how it
// was called.
func coded(inst *running) error {
	switch s := fault.Class(status(inst.err)); {
	case s < fault.Preflight:
		return fmt.Errorf("the install ended in a way that is none: %w", inst.err)
	case inst.said.fault() == "":
		return fmt.Errorf("the install ended without a code: %w", inst.err)
	}
	return nil
}

// reference is an install that nobody disturbs.
type reference struct {
	facts     facts.Facts
	journaled map[string]bool // the steps that have a journal
	took      time.Duration
}
