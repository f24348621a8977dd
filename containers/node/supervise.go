package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

type command struct {
	name    string
	program string
	args    []string
	stop    time.Duration // from SIGTERM to SIGKILL
}

// restarts are the pauses before a command that ended is started again. They begin anew once it
// has run for resetAfter.
func restarts() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Cap: 5 * time.Second, Steps: 10}
}

const resetAfter = 20 * time.Second

// process is a command under supervision. Its methods may be called from any
// goroutine.
type process struct {
	command
	log     *logFile
	logLine func(string)

	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	state    string // "starting", "running", "waiting to restart", "stopped"
	since    time.Time
	restarts int
}

// supervise starts c in a process group of its own, with its output in
// <logDir>/<name>.log, and again whenever it ends, until end. The end of ctx does
// not stop it: components are stopped in order.
func supervise(ctx context.Context, c command, logDir string, logLine func(string)) *process {
	log := newLog(filepath.Join(logDir, c.name+".log"))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &process{command: c, log: log, logLine: logLine, cancel: cancel, done: make(chan struct{})}
	p.set("starting")
	go p.run(ctx)
	return p
}

func (p *process) run(ctx context.Context) {
	defer close(p.done)
	defer release(p.log)
	defer p.set("stopped")
	pauses := restarts()
	for ctx.Err() == nil {
		started := time.Now()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) >= resetAfter {
			pauses = restarts()
		}
		pause := pauses.Step()
		p.set("waiting to restart")
		p.mu.Lock()
		p.restarts++
		p.mu.Unlock()
		p.logLine(fmt.Sprintf("%s ended (%v), starts again in %s; its last line: %s", p.name, err, pause, p.log.Last()))
		sleep(ctx, pause)
	}
}

// once runs the command to its end. When ctx ends, its process group gets
// SIGTERM and, after p.stop, SIGKILL.
func (p *process) once(ctx context.Context) error {
	cmd := exec.Command(p.program, p.args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.WaitDelay = 200 * time.Millisecond // for children that outlive it with its output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.set("running")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case err = <-ended:
		case <-time.After(p.stop):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			err = <-ended
		}
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	return err
}

func (p *process) end() {
	p.cancel()
	<-p.done
}

func (p *process) set(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != state {
		p.state, p.since = state, time.Now()
	}
}

// status is the state of one part of the node, as the health endpoint shows it.
type status struct {
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts,omitempty"`
	Detail   string    `json:"detail,omitempty"`
}

func (p *process) status() status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := status{State: p.state, Since: p.since.UTC(), Restarts: p.restarts}
	if p.state != "running" || p.restarts > 0 {
		s.Detail = p.log.Last()
	}
	return s
}
