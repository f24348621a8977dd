package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config/folder"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
)

// Limits for the process of a background cluster: to open a session, between pings, for an answer.
const (
	lendLimit = time.Minute
	pingEvery = 2 * time.Second
	pingLimit = time.Minute // with several clusters on two processors, an engine took over ten seconds
)

// files are the socket and the log of the process that runs the deployment's cluster on this engine.
func files(deployment string) (socket, log string, err error) {
	dir, err := folder.Cache()
	if err != nil {
		return "", "", fmt.Errorf("find the user's cache: %w", err)
	}
	machine, _ := bounded.File("/etc/machine-id", bounded.Written) // several may share the folder
	on := []string{deployment, string(machine)}
	for _, name := range []string{daggercli.EnvRunner, "DOCKER_HOST", "DOCKER_CONTEXT"} { // where the engine is
		on = append(on, os.Getenv(name))
	}
	sum := sha256.Sum256([]byte(strings.Join(on, "\n")))
	dir = filepath.Join(dir, "background")
	return filepath.Join(dir, hex.EncodeToString(sum[:8])), filepath.Join(dir, deployment+".log"), nil
}

// codeBackground: the background cluster's process did not start.
const codeBackground fault.Code = "DEP-006"

// background starts a process that lends a session.
func (s *Session) background(ctx context.Context, io console.Streams) (*background.Client, error) {
	socket, log, err := files(s.of.Deployment)
	if err != nil {
		return nil, err
	}
	failed := func(class fault.Class, err error) error {
		return &fault.Fault{Code: codeBackground, Class: class, Op: "start the background cluster", Err: err,
			Fix: "correct that, then run the same command again"}
	}
	var out *os.File
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(log), 0o700)
	}
	if err == nil {
		out, err = os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return nil, failed(fault.Preflight, err)
	}
	defer func() { _ = out.Close() }()
	args := []string{"cluster", "--lend"}
	if s.of.Unpublished {
		args = append(args, "--unpublished")
	}
	child := exec.Command(self, append(args, s.of.Args...)...) //nolint:noctx // it outlives this process
	child.Stdout, child.Stderr = out, out
	child.SysProcAttr = daggercli.Detached()
	if s.of.Stdin != nil {
		child.Stdin = bytes.NewReader(s.of.Stdin)
	}
	if err := child.Start(); err != nil {
		return nil, failed(fault.Preflight, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Wait() // ProcessState has it
	}()
	limit := time.After(lendLimit)
	for {
		found, err := background.Find(ctx, socket)
		if found != nil {
			return found, nil
		}
		if err != nil {
			return nil, errors.Join(err, child.Process.Kill())
		}
		select {
		case <-time.After(50 * time.Millisecond):
			continue
		case <-ended:
			text, err := bounded.File(log, bounded.Generated)
			if f := containers.ParseFault(string(text)); f != nil {
				return nil, fmt.Errorf("start the background cluster: %w", f)
			}
			return nil, failed(fault.Preflight, errors.Join(fmt.Errorf("%s: %s", child.ProcessState, containers.Complaint(string(text))), err))
		case <-limit:
			err = fmt.Errorf("process %d opened no session within %s; its log is %s", child.Process.Pid, lendLimit, log)
			err = failed(fault.Timeout, err)
		case <-io.Stop:
			err = console.Interrupted("start the background cluster", "run the same command again")
		}
		return nil, errors.Join(err, child.Process.Kill())
	}
}
