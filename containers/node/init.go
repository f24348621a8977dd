package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// superviseAsInit is what the first process of the container does: it runs this
// program again, passes signals on and reaps the processes that containers leave
// behind. When the supervisor ends, it ends too, and the kernel with it all
// processes of the container. It returns the supervisor's exit code.
func superviseAsInit(args []string) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGCHLD)

	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(os.Stderr, "slipway-node: find its own program: %v\n", err)
		return 1
	}
	child, err := syscall.ForkExec(self, append([]string{self}, args...), &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "slipway-node: start the supervisor: %v\n", err)
		return 1
	}
	for s := range signals {
		if s != syscall.SIGCHLD {
			_ = syscall.Kill(child, s.(syscall.Signal)) // gone already: its SIGCHLD follows
			continue
		}
		if status, ended := reap(child); ended {
			if status.Signaled() {
				return 128 + int(status.Signal())
			}
			return status.ExitStatus()
		}
	}
	return 1
}

// reap waits for every process that has ended and reports whether child was one.
func reap(child int) (status syscall.WaitStatus, ended bool) {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid <= 0:
			return status, ended
		case pid == child:
			status, ended = s, true
		}
	}
}
