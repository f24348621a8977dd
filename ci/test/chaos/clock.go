package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// jump is by how much the clock is ahead, and for how long.
const (
	jump    = 10 * time.Minute
	jumpFor = 30 * time.Second
)

// jumpCommand is the first argument with which this program sets the clock, and sets it back.
const jumpCommand = "set-the-clock-ahead"

// jumpClock sets the clock ahead for a while. A process of its own does, so that it is set back
// however this one ends.
func (r *round) jumpClock(ctx context.Context, inst *running) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	began := time.Now()
	child := exec.Command(self, jumpCommand)                // its standard input ends it, too, and then it has set the clock back
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is not for it
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := child.Start(); err != nil {
		return "", fmt.Errorf("set the clock ahead: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	select {
	case err = <-ended:
	case <-inst.gone:
		_ = in.Close()
		err = <-ended
	case <-ctx.Done():
		_ = in.Close()
		err = <-ended
	}
	if err != nil { // whatever has happened to it
		return "", errors.Join(fmt.Errorf("set the clock ahead: %w", err), setClock(now(began)))
	}
	return fmt.Sprintf("the clock was %s ahead for %s", jump, time.Since(began).Round(time.Second)), nil
}

// now is the time by a clock that has shown began when it was right, and was set since.
func now(began time.Time) time.Time { return began.Add(time.Since(began)) }

// ahead sets the clock ahead for d, or until in ends, and then back.
func ahead(in io.Reader, d time.Duration, set func(time.Time) error) error {
	began := time.Now()
	if err := set(began.Add(jump)); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(d):
	}
	return set(now(began))
}

func setClock(t time.Time) error {
	ts := unix.NsecToTimespec(t.UnixNano())
	return unix.ClockSettime(unix.CLOCK_REALTIME, &ts)
}

// hasClock is a skipped unless this program may set the clock.
func (d *deployment) hasClock(context.Context) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("ask what this program may do: %w", err)
	}
	if sets[0].Effective&(1<<unix.CAP_SYS_TIME) == 0 {
		return skipped("only who has the capability SYS_TIME may set the clock")
	}
	return nil
}
