package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// end ends the process of the record: asked first, by force after a while. It
// is the first process of its namespace, so every container and helper of the
// engine ends with it.
func (c *control) end(r record) error {
	fd, err := unix.PidfdOpen(r.PID, 0) // tells when all of them have ended
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !r.alive() {
		return nil
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if ended(fd, stopTimeout) {
			return errors.Join(removeBridge(c.paths.network+"0"), removeIfThere(c.paths.socket))
		}
		c.logf("engine: process %d still runs %s after %s", r.PID, stopTimeout, signal)
	}
	return fmt.Errorf("process %d does not end", r.PID)
}

// ended waits until the process of a handle has ended.
func ended(fd int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(0, int(time.Until(deadline).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return n == 1 && err == nil
		}
	}
}
