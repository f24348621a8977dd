package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/fault"
)

const stopTimeout = 20 * time.Second

// launch starts an engine made of parts and returns when it answers. The
// engine is a session of its own: it lives on when the caller ends.
func (c *control) launch(ctx context.Context, parts engineParts) error {
	p := c.paths
	for _, dir := range []string{p.state, p.runtime, p.mount} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("start the engine: %w", err)
		}
	}
	if err := os.RemoveAll(p.socket); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	text, err := c.setup(ctx, parts)
	if err != nil {
		return err
	}
	// The log of the run before is kept, for the case that it crashed.
	if err := os.Rename(p.log, p.log+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("start the engine: %w", err)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	defer func() { _ = log.Close() }()
	// Not bound to ctx: it outlives this program.
	cmd := exec.Command("/proc/self/exe", insideCommand)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), log, log
	cmd.SysProcAttr = &unix.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
	}
	r := record{Version: daggerVersion, Began: time.Now().UTC().Truncate(time.Second), CLI: parts.cli}
	if err = cmd.Start(); err == nil {
		r.PID = cmd.Process.Pid
		if err = r.write(p.pid); err != nil {
			err = errors.Join(err, c.end(r))
		}
	}
	if err != nil {
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "start the engine", Err: err,
			Fix: "run as root with all capabilities (in a container: privileged) and with space left in " + p.dir + ", or start Docker; then run make engine again"}
	}
	if err := c.await(ctx, parts.cli, func() bool { return !r.alive() }); err != nil {
		if left := c.end(r); left != nil {
			return errors.Join(err, left) // on record: stop finds it
		}
		return errors.Join(err, os.RemoveAll(p.pid))
	}
	return nil
}

// await returns when the engine answers the CLI, or has ended.
func (c *control) await(ctx context.Context, cli string, ended func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %s", c.timeout))
	defer cancel()
	err := c.connect(ctx, ended)
	if err == nil {
		err = coreVersion(ctx, cli, c.paths.host())
	} else if ended() {
		err = fmt.Errorf("it ended at once: %w", err)
	}
	if err == nil {
		return nil
	}
	return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "start the engine", Fix: "read " + c.paths.log + ", then run make engine again",
		Err: fmt.Errorf("%w; the end of its log:\n%s", err, c.logTail())}
}

func (c *control) logTail() string {
	b, err := os.ReadFile(c.paths.log)
	if err != nil {
		return err.Error()
	}
	return build.LastLines(string(b), 15)
}

func (c *control) setup(ctx context.Context, parts engineParts) ([]byte, error) {
	addrs, err := hostAddrs(c.paths.network + "0")
	if err != nil {
		return nil, err
	}
	cidr, err := freeCIDR(addrs)
	if err != nil {
		return nil, &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "start the engine", Err: err, Fix: "free one of these networks, then run make engine again"}
	}
	host, err := readGo(ctx)
	if err != nil {
		return nil, err
	}
	s := setup{
		Root:    parts.root,
		Config:  string(c.config),
		SDK:     parts.sdk,
		Mount:   c.paths.mount,
		State:   c.paths.state,
		Runtime: c.paths.runtime,
		Network: c.paths.network,
		CIDR:    cidr,
		Args: []string{engineBin,
			"--addr", "unix://" + filepath.Join(runDir, "engine.sock"),
			"--allow-insecure-entitlement", "security.insecure",
			"--network-name", c.paths.network,
			"--network-cidr", cidr,
		},
		// Nothing of the caller's environment: no proxy and no credential gets
		// into the engine, and so into its containers, by accident.
		Env: []string{
			"PATH=" + enginePath,
			"HOME=/root",
			"LC_ALL=C.UTF-8",
			"DO_NOT_TRACK=1",
			"DAGGER_GO_SDK_MANIFEST_DIGEST=" + parts.image,
			"GOPROXY=" + host["GOPROXY"],
			"_EXPERIMENTAL_DAGGER_ENGINE_NAME=slipway",
		},
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("describe the engine: %w", err)
	}
	return text, nil
}

// end ends the process of the record: asked first, by force after a while. It
// is the first process of its namespace, so every container and helper of the
// engine ends with it.
func (c *control) end(r record) error {
	fd, err := unix.PidfdOpen(r.PID, 0) // tells when all of them have ended
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !r.alive() {
		return nil
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if ended(fd, stopTimeout) {
			return errors.Join(removeBridge(c.paths.network+"0"), os.RemoveAll(c.paths.socket))
		}
		c.logf("engine: process %d still runs %s after %s", r.PID, stopTimeout, signal)
	}
	return fmt.Errorf("process %d does not end", r.PID)
}

// ended waits until the process of a handle has ended.
func ended(fd int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(0, int(time.Until(deadline).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return n == 1 && err == nil
		}
	}
}
