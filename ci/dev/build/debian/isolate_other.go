//go:build !linux

package debian

import "syscall"

// isolated gives mmdebstrap a process group of its own.
func isolated() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
