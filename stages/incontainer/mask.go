package incontainer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Mask runs commands of the user's, with what is secret in them.
type Mask struct {
	// Secrets are names of environment variables, whose values are secret.
	Secrets []string
	// Kubeconfig is a file whose credentials are secret; empty for none.
	Kubeconfig string
}

// The exit codes of a shell for a command that it cannot run, and for one that is not there.
const (
	exitNotRun   = 126
	exitNotFound = 127
)

// lingering is how long what a command has left running may still print.
const lingering = time.Second

// Run runs a command and returns its exit code, as a shell has it. What it prints is written with
// *** in place of each secret, in whatever form that is: what leaves a container is in the engine's
// telemetry as well, and the engine finds a secret only as it is.
func (m Mask) Run(command []string, out, errw io.Writer) (int, error) {
	var known redact.Secrets
	for _, name := range m.Secrets {
		known.Add(os.Getenv(name))
	}
	if m.Kubeconfig != "" {
		text, err := bounded.File(m.Kubeconfig, bounded.Written)
		if err != nil {
			return 0, fmt.Errorf("read what is secret in the kubeconfig: %w", err)
		}
		kubeconfig.Secrets(text, known.Add)
	}
	stdout, stderr := redact.NewLineWriter(&known, out), redact.NewLineWriter(&known, errw)
	defer stdout.Flush()
	defer stderr.Flush()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.WaitDelay = lingering
	err := cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitCode(ended.ProcessState), nil
	}
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(stderr, err)
		return exitNotFound, nil
	}
	fmt.Fprintln(stderr, err)
	return exitNotRun, nil
}

// exitCode is the exit code of a process, or 128 and the number of the signal that ended it.
func exitCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
