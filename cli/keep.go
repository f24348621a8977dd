package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/keeper"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// keeping says who keeps the cluster running after a command.
type keeping int

const (
	keepNone    keeping = iota // nobody, unless somebody does already
	keepHere                   // this process, until it ends
	keepRun                    // a process in the background, also after a run that failed
	keepCluster                // the same, if the cluster comes up
)

// How long the process in the background may take to open a session, how often it
// looks whether the engine is still there, and for how long it waits for it.
const (
	lendLimit = time.Minute
	pingEvery = 2 * time.Second
	pingLimit = 10 * time.Second
)

// keeperFiles are the socket of the process that keeps the deployment's cluster
// running on the engine that is used, and the log of one in the background.
func keeperFiles(deployment string) (socket, log string, err error) {
	dir, err := cache()
	if err != nil {
		return "", "", fmt.Errorf("find the user's cache: %w", err)
	}
	sum := sha256.Sum256([]byte(deployment + "\n" + os.Getenv(envRunner)))
	dir = filepath.Join(dir, "keepers")
	return filepath.Join(dir, hex.EncodeToString(sum[:8])), filepath.Join(dir, deployment+".log"), nil
}

// session connects to the engine: in the session in which the deployment's cluster
// is kept running, if there is one, else in one of its own. The caller calls end.
func (t *target) session(ctx context.Context, io streams) (client *dagger.Client, end func(), err error) {
	log := engineLog(io.err, t.verbose)
	leave := func() {}
	switch {
	case os.Getenv(envSession) != "": // dagger run, or the module
		if t.keep != keepNone && t.keep != keepHere {
			return nil, nil, errUsage{fmt.Errorf("%s names a session, and nothing outlives that", envSession)}
		}
	case t.keep == keepHere:
		leave, err = t.open(ctx, log)
	default:
		leave, err = t.join(ctx, io, log)
	}
	if err != nil {
		return nil, nil, err
	}
	if client, err = connect(ctx, log); err != nil {
		leave()
		return nil, nil, err
	}
	return client, func() {
		_ = client.Close()
		leave()
	}, nil
}

// open prepares connect for a session that this process opens and may lend.
func (t *target) open(ctx context.Context, log io.Writer) (end func(), err error) {
	socket, _, err := keeperFiles(t.cfg.Global.Name)
	if err != nil {
		return nil, err
	}
	if other, err := keeper.Find(ctx, socket); err != nil || other != nil {
		return nil, errors.Join(err, other.Already())
	}
	if t.own, err = openSession(ctx, io.MultiWriter(log, &t.shared)); err != nil {
		return nil, err
	}
	return t.own.end, enter(t.own.Session)
}

// join prepares connect to join the session of the process that keeps the
// deployment's cluster running; where none does, one is started if it is to.
func (t *target) join(ctx context.Context, io streams, log io.Writer) (leave func(), err error) {
	socket, _, err := keeperFiles(t.cfg.Global.Name)
	if err != nil {
		if t.keep == keepNone {
			return func() {}, nil // who has no cache has no keeper
		}
		return nil, err
	}
	if t.joined, err = keeper.Find(ctx, socket); err != nil {
		return nil, err
	}
	if t.joined == nil && t.keep != keepNone {
		if t.joined, err = t.background(ctx, io); err != nil {
			return nil, err
		}
		t.ends = true // until the cluster is there
	}
	if t.joined == nil {
		return func() {}, nil
	}
	left, err := t.joined.Attend(ctx, t.work, log)
	if err != nil && t.ends {
		return nil, errors.Join(err, t.joined.Stop(ctx))
	}
	if err != nil {
		return nil, err
	}
	if err := enter(t.joined.Session); err != nil {
		left()
		return nil, err
	}
	return func() {
		left()
		if !t.ends {
			return
		}
		if err := t.joined.Stop(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintf(io.err, "slipway: stop the cluster that process %d keeps running: %v\n", t.joined.PID, err)
		}
	}, nil
}

// enter lets the SDK connect to a session.
func enter(s keeper.Session) error {
	return errors.Join(os.Setenv(envSession, strconv.Itoa(s.Port)), os.Setenv(envToken, s.Token))
}

// codeBackground: the process that was to keep the cluster running in the
// background did not start.
const codeBackground fault.Code = "DEP-006"

// background starts a process that lends a session until slipway cluster --stop.
func (t *target) background(ctx context.Context, io streams) (*keeper.Client, error) {
	socket, log, err := keeperFiles(t.cfg.Global.Name)
	if err != nil {
		return nil, err
	}
	failed := func(class fault.Class, err error) error {
		return &fault.Fault{Code: codeBackground, Class: class, Op: "keep the cluster running in the background", Err: err,
			Fix: "correct that, then run the same command again"}
	}
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(log), 0o700)
	}
	if err != nil {
		return nil, failed(fault.Preflight, err)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, failed(fault.Preflight, err)
	}
	defer func() { _ = out.Close() }()
	child := exec.Command(self, t.lenderArgs()...) //nolint:noctx // it outlives this process
	child.Stdout, child.Stderr = out, out
	child.SysProcAttr = detached()
	if t.given != nil {
		child.Stdin = bytes.NewReader(t.given)
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
		found, err := keeper.Find(ctx, socket)
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
			text, err := os.ReadFile(log)
			if told := containers.ToldFault(string(text)); told != nil {
				return nil, fmt.Errorf("keep the cluster running in the background: %w", told)
			}
			return nil, failed(fault.Preflight, errors.Join(fmt.Errorf("%s: %s", child.ProcessState, containers.Complaint(string(text))), err))
		case <-limit:
			err = fmt.Errorf("process %d opened no session within %s; its log is %s", child.Process.Pid, lendLimit, log)
			err = failed(fault.Timeout, err)
		case <-io.stop:
			err = errInterrupted
		}
		return nil, errors.Join(err, child.Process.Kill())
	}
}

// lenderArgs is the command line of the process in the background: the flags of
// this one that say what it works on.
func (t *target) lenderArgs() []string {
	args := []string{"cluster", "--lend"}
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	targetFlags(known)
	t.flags.Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) != nil {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	if t.byName && !t.flags.Changed("deployment") { // however it was chosen, this is it
		args = append(args, "--deployment="+t.deployment)
	}
	return args
}

// kept ends a command after which the cluster is to run on: its ports are
// published. A run that did not start it leaves nothing running that it began.
func (t *target) kept(ctx context.Context, io streams, c *conductor.Conductor, runErr error) error {
	if t.keep == keepNone {
		return runErr
	}
	ports, err := c.ClusterPorts()
	if err != nil || t.keep == keepRun && !c.NodeRuns() {
		return errors.Join(runErr, err)
	}
	if err := t.joined.Publish(ctx); err != nil {
		return errors.Join(runErr, err)
	}
	t.ends = false
	io.err.End()
	clusterReady(io.out, t, ports)
	return runErr
}

// lend runs the cluster and lends the session in which it does, until it is told
// to stop; with wait, the cluster comes up when somebody asks for it.
func (t *target) lend(ctx context.Context, io streams, c *conductor.Conductor, wait bool) (err error) {
	if wait {
		defer func() { tellFault(io.err, err) }() // to the process that started this one
	}
	until, release := endsWith(ctx, io.stop)
	defer release()
	if err := c.FreePorts(until); err != nil {
		return err
	}
	own, err := c.ClusterPorts()
	if err != nil {
		return err
	}
	ready := func() { clusterReady(io.out, t, own) }
	if t.own == nil { // below dagger run
		return errors.Join(c.Up(until, ready), c.Down(ctx))
	}
	socket, log, err := keeperFiles(t.cfg.Global.Name)
	if err != nil {
		return err
	}
	kept := keeper.Kept{Deployment: t.cfg.Global.Name, Session: t.own.Session, Node: c.NodeID(), Background: wait}
	if wait {
		kept.Log = log
	}
	k, err := keeper.Keep(until, socket, kept, &t.shared, func(ready func()) error {
		err := c.Up(until, ready)
		if _, coded := errors.AsType[*fault.Fault](err); err != nil && !coded {
			err = noEngine(fmt.Errorf("it gave the cluster up: %w", err))
		}
		return err
	})
	if err != nil {
		return err
	}
	context.AfterFunc(until, func() { k.End(nil) })
	go func() { k.End(watchEngine(until, c, k)) }()
	if !wait {
		go func() {
			if k.Publish(until) == nil {
				ready()
			}
		}()
	}
	<-k.Done()
	if work := k.Working(); work != "" {
		fmt.Fprintf(io.err, "slipway: waiting for %s; interrupt again to stop at once\n", work)
	}
	k.Drain(ctx)
	return errors.Join(k.Cause(), c.Down(ctx), k.Close())
}

// watchEngine returns when the engine, or the cluster that was there, does not
// answer any more, or the keeper can't be found; nil when ctx ends.
func watchEngine(ctx context.Context, c *conductor.Conductor, k *keeper.Keeper) error {
	for {
		select {
		case <-time.After(pingEvery):
		case <-ctx.Done():
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, pingLimit)
		err := c.Ping(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return noEngine(fmt.Errorf("it does not answer any more: %w", err))
		case !k.Found():
			return errors.New("its socket is gone")
		}
	}
}

// stopCluster ends the process that keeps the cluster running.
func (t *target) stopCluster(ctx context.Context, io streams) error {
	cfg, err := t.load(io)
	if err != nil {
		return err
	}
	socket, _, err := keeperFiles(cfg.Global.Name)
	if err != nil {
		return err
	}
	found, err := keeper.Find(ctx, socket)
	switch {
	case err != nil:
		return err
	case found == nil:
		fmt.Fprintf(io.out, "the cluster of deployment %s does not run\n", cfg.Global.Name)
		return nil
	}
	if err := found.Stop(ctx); err != nil {
		return err
	}
	fmt.Fprintf(io.out, "the cluster of deployment %s is stopped\n", cfg.Global.Name)
	return nil
}
