//go:build unix

package session

import (
	"syscall"
)

// detached lets a process live on without the terminal of this one.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
