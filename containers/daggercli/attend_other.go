//go:build !unix

package daggercli

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// shields: this system has no process groups that we use.
const shields = false

// attend is not there.
func attend(string, []string, time.Duration, io.Reader, *os.File, *os.File) (int, error) {
	return 0, errors.ErrUnsupported
}

// Detached leaves a process as it is: what it needs to live on without a terminal is not known here.
func Detached() *syscall.SysProcAttr { return nil }
