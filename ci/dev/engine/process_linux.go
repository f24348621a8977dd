package main

import (
	"fmt"
	"os/exec"
	"time"
)

// process is the first process of an engine's namespaces, as its starter sees it.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended and is collected
	err   error         // how it ended; to be read once ended is closed
}

func begin(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// kill ends the process by force, and with it every process of its namespace, and
// returns when all are gone. It may have ended before.
func (p *process) kill() error {
	_ = p.cmd.Process.Kill() // fails only where it has ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("process %d did not end within %s of SIGKILL", p.cmd.Process.Pid, stopTimeout)
	}
}
