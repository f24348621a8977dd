//go:build unix

package main

import (
	"os"
	"syscall"
)

// shields tells whether this system has process groups.
const shields = true

// become replaces this program by another one in a new process group.
func become(program string, args []string) error {
	if err := syscall.Setpgid(0, 0); err != nil {
		return err
	}
	return syscall.Exec(program, append([]string{program}, args...), os.Environ())
}
