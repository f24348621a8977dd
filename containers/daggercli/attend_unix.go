//go:build unix

package daggercli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// shields: this system has process groups.
const shields = true

// attend runs the dagger CLI in a process group that this program leads, and
// returns its exit code. The CLI ends its session when its standard input ends; one
// that has not ended after timeout, because its engine is gone, is killed: the
// SDK would wait for it for minutes.
func attend(cli string, args []string, timeout time.Duration, in io.Reader, out, errw *os.File) (int, error) {
	if err := syscall.Setpgid(0, 0); err != nil {
		return 0, err
	}
	cmd := exec.Command(cli, args...) //nolint:noctx // its end is that of its input
	cmd.Stdout, cmd.Stderr = out, errw
	input, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		_, _ = io.Copy(input, in)
		_ = input.Close()
		time.AfterFunc(timeout, func() {
			fmt.Fprintf(errw, "slipway: the Dagger session did not end within %s and is given up\n", timeout)
			_ = cmd.Process.Kill()
		})
	}()
	err = cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return max(cmd.ProcessState.ExitCode(), 1), nil // below 0: killed
	}
	return 0, err
}

// Detached lets a process live on without the terminal of this one, whose interrupts do not reach it.
func Detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
