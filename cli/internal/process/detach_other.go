//go:build !unix

// Package process starts processes that an interrupt on this one's terminal does not reach.
package process

import (
	"syscall"
)

// Detached leaves a process as it is: what it needs to live on without a terminal is
// not known here.
func Detached() *syscall.SysProcAttr { return nil }
