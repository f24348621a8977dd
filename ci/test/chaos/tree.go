package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// frozen are processes that were stopped, by pid.
type frozen map[int]process

// freezeLimit is how long it may take until all processes of a tree stand still.
const freezeLimit = 10 * time.Second

// freeze stops the processes with some pids and all that are below them. It returns once all
// of them stand still; after an error none does. Those that somebody else has stopped are not
// among what thaw lets go on.
func freeze(roots ...int) (frozen, error) {
	f := frozen{}
	for end := time.Now().Add(freezeLimit); ; time.Sleep(5 * time.Millisecond) {
		moving, err := f.stop(roots)
		switch {
		case err == nil && moving == 0:
			return f, nil
		case err == nil && time.Now().After(end):
			err = fmt.Errorf("%d processes do not stand still after %s", moving, freezeLimit)
		}
		if err != nil {
			return nil, errors.Join(err, f.thaw())
		}
	}
}

// stop stops what does not stand still, and returns how many that are: what one of them has
// started meanwhile is only seen the next time. One that is in the kernel and stops when it leaves
// that stands still: it may wait there for a child that does (vfork).
func (f frozen) stop(roots []int) (moving int, err error) {
	all, err := trees(roots...)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.still() || p.state == "D" && f[p.pid].began == p.began {
			continue
		}
		moving++
		switch err := p.signal(syscall.SIGSTOP); {
		case err == nil:
			f[p.pid] = p
		case !errors.Is(err, os.ErrProcessDone):
			return moving, err
		}
	}
	return moving, nil
}

// thaw lets the processes go on, as far as they have not been killed.
func (f frozen) thaw() error {
	var errs []error
	for _, p := range f {
		if err := p.signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
