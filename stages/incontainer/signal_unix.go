//go:build unix

package incontainer

import (
	"os"
	"syscall"
)

// exitCode is that of a process which has ended; of one that a signal has ended, 128 and the
// signal's number.
func exitCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
