//go:build unix

// Package process starts processes that an interrupt on this one's terminal does not reach.
package process

import (
	"syscall"
)

// Detached lets a process live on without the terminal of this one.
func Detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
