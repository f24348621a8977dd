package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// end ends the process of the record: asked first, by force after a while. It
// is the first process of its namespace, so every container and helper of the
// engine ends with it.
func (c *control) end(ctx context.Context, r record) error {
	// A handle on the process: from here on no other can be meant.
	fd, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !r.alive(proc) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	if !waitEnd(ctx, fd, stopTimeout) {
		c.logf("engine: process %d still runs after %s; ending it by force", r.PID, stopTimeout)
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if !waitEnd(context.WithoutCancel(ctx), fd, stopTimeout) {
			return fmt.Errorf("process %d did not end within %s of SIGTERM and %s of SIGKILL; last seen in state %s", r.PID, stopTimeout, stopTimeout, proc.state(r.PID))
		}
	}
	return errors.Join(removeBridge(c.paths.network+"0"), removeIfThere(c.paths.socket))
}

// waitEnd waits until the process of a handle has ended.
func waitEnd(ctx context.Context, fd int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; {
		left := min(time.Until(deadline), 200*time.Millisecond)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(0, int(left.Milliseconds())))
		switch {
		case n == 1 && err == nil:
			return true
		case ctx.Err() != nil || !time.Now().Before(deadline):
			return false
		}
	}
}
