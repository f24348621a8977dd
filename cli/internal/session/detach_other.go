//go:build !unix

package session

import (
	"syscall"
)

// detached leaves a process as it is: what it needs to live on without a terminal is
// not known here.
func detached() *syscall.SysProcAttr { return nil }
