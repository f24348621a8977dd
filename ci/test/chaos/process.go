package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/stages/contract"
)

// process is one of the machine's, as /proc shows it.
type process struct {
	pid, parent int
	args        []string
	state       string // "R", "S", "T": see proc(5)
	began       string // in ticks since the machine was started
}

// still reports whether it does nothing until it gets SIGCONT, or has ended.
func (p process) still() bool { return strings.Contains("TZXx", p.state) }

// signal sends it a signal, and no other process that has got its pid. The error is
// os.ErrProcessDone if it has ended.
func (p process) signal(s syscall.Signal) error {
	handle, err := os.FindProcess(p.pid) // from here on the pid is that of one process
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if now, err := readProcess(procDir(p.pid)); err != nil || now.began != p.began {
		return os.ErrProcessDone
	}
	if err := handle.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", s, p.pid, err)
	} else if err != nil {
		return os.ErrProcessDone
	}
	return nil
}

// trees are the processes with some pids and all that are below them.
func trees(roots ...int) ([]process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for _, dir := range dirs {
		p, err := readProcess(dir)
		if err == nil { // one that ended meanwhile is none
			all[p.pid] = p
		}
	}
	var found []process
	for _, p := range all {
		for at := p.pid; at > 1; at = all[at].parent {
			if slices.Contains(roots, at) {
				found = append(found, p)
				break
			}
		}
	}
	return found, nil
}

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

func readProcess(dir string) (process, error) {
	var p process
	cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return p, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, err
	}
	// The second field is the command in brackets, which may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return p, fmt.Errorf("%s/stat has too few fields", dir)
	}
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return p, err
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return p, err
	}
	return process{pid, parent, strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00"), fields[0], fields[19]}, nil
}

// isStep reports whether it runs a step in its container, and not the init of that
// container, which has the step's command line behind its own.
func (p process) isStep() bool {
	return len(p.args) > 2 && filepath.Base(p.args[0]) == "slipway" && p.args[1] == "step"
}

// request is what a step says in its container of whom it works for; the zero value if it has
// ended.
type request struct{ Deployment, Run string }

func (p process) request() request {
	text, err := os.ReadFile(procDir(p.pid) + "/root" + contract.RequestFile)
	if err != nil {
		return request{}
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return request{}
	}
	return r
}

// holds reports whether it holds the lock for a run.
func (p process) holds(run string) bool {
	at := slices.Index(p.args, "--run")
	return len(p.args) > 2 && filepath.Base(p.args[0]) == "slipway" && p.args[1] == "state" && p.args[2] == "hold" &&
		at > 0 && at+1 < len(p.args) && p.args[at+1] == run
}

// errGone says that the install ended before anything could be done to it.
var errGone = errors.New("the install was over")

// find waits until a process below the engine is wanted, at most until inst is over.
func (d *deployment) find(ctx context.Context, inst *running, wanted func(process) bool) (process, error) {
	engine, err := d.engine(ctx)
	if err != nil {
		return process{}, err
	}
	for {
		below, err := trees(engine)
		if err != nil {
			return process{}, fmt.Errorf("look at the engine's processes: %w", err)
		}
		for _, p := range below {
			if wanted(p) {
				return p, nil
			}
		}
		select {
		case <-ctx.Done():
			return process{}, context.Cause(ctx)
		case <-inst.gone:
			return process{}, errGone
		case <-time.After(20 * time.Millisecond):
		}
	}
}
