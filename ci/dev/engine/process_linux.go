package main

import (
	"errors"
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

// begin starts cmd and sends it setup on its standard input, but not before note
// has put its pid on record. Whoever is killed in between leaves a cmd that reads
// the end of its input, and so ends: none runs that is not on record. When begin
// fails, cmd does not run.
func begin(cmd *exec.Cmd, setup []byte, note func(pid int) error) (*process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	err = note(cmd.Process.Pid)
	if err == nil {
		_, err = in.Write(setup)
	}
	_ = in.Close() // nothing is in a buffer, and the end of cmd may have closed it
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
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
