//go:build !unix

package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// shields tells whether this system has process groups.
const shields = false

// attend is not there.
func attend(string, []string, time.Duration, io.Reader, *os.File, *os.File) (int, error) {
	return 0, errors.ErrUnsupported
}

// detached leaves a process as it is: what it needs to live on without a terminal is
// not known here.
func detached() *syscall.SysProcAttr { return nil }
