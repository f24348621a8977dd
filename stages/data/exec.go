package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/step"
)

// executor runs a command in a container of a pod. in and out may be nil.
type executor func(ctx context.Context, at container, command []string, in io.Reader, out io.Writer) error

type container struct{ namespace, pod, name string }

// closing is how long kubectl may take to end once it was told to: see lasting.
const closing = 6 * time.Second

// maxComplaint is how much of a command's standard error an error has; more is kept, so that no
// secret is cut in two before it is found.
const maxComplaint = 600

// kubectl runs commands by the pinned kubectl.
func kubectl(env *step.Env) executor {
	return func(ctx context.Context, at container, command []string, in io.Reader, out io.Writer) error {
		cmd := exec.CommandContext(ctx, filepath.Join(env.ToolsDir, "kubectl"), execArgs(env.Kubeconfig, at, command, in != nil)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = closing
		said := &tail{}
		cmd.Stderr = io.MultiWriter(said, env.Output())
		cmd.Stdin, cmd.Stdout = in, out
		if out == nil {
			cmd.Stdout = env.Output()
		}
		// A pod of the same name may be another run's by now.
		if err := lock.Guard(ctx); err != nil {
			return err
		}
		err := cmd.Run()
		switch _, exited := errors.AsType[*exec.ExitError](err); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case !exited:
			return err
		}
		return fmt.Errorf("%s in pod %s/%s: %w: %s", command[0], at.namespace, at.pod, err, said.complaint(env))
	}
}

func execArgs(kubeconfig string, at container, command []string, stdin bool) []string {
	args := []string{"--kubeconfig", kubeconfig, "exec", "--namespace", at.namespace, at.pod, "--container", at.name}
	if stdin {
		args = append(args, "--stdin")
	}
	return append(append(args, "--"), command...)
}

// tail keeps the end of what is written to it.
type tail struct{ buf bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if over := t.buf.Len() - 4*maxComplaint; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

// complaint is the end of it in one line, without secrets.
func (t *tail) complaint(env *step.Env) string {
	text := env.Clean(redact.External(t.buf.String()))
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return strings.ToValidUTF8(text[max(0, len(text)-maxComplaint):], "")
}
