package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// Publish publishes the cluster's ports, unless unwanted, calls ready, and keeps the cluster after this command.
// A run that did not start the cluster leaves nothing running.
func (s *Session) Publish(ctx context.Context, c *conductor.Conductor, ready func(ports []int), runErr error) error {
	if s.of.Lifetime == Ends {
		return runErr
	}
	ports, err := c.ClusterPorts()
	if err != nil || s.of.Lifetime == AfterRun && !c.NodeRuns() {
		return errors.Join(runErr, err)
	}
	if err := s.Joined.Publish(ctx); err != nil {
		return errors.Join(runErr, err)
	}
	s.ends = false
	if s.Joined.Unpublished {
		ports = nil
	}
	ready(ports)
	return runErr
}

// Lend runs the cluster and lends its session until told to stop. With wait, it starts the cluster on request.
func (s *Session) Lend(ctx context.Context, io console.Streams, c *conductor.Conductor, wait bool, ready func(ports []int)) (err error) {
	if wait {
		defer func() { containers.WriteFault(io.Err, err) }() // to the process that started this one
	}
	until, release := console.UntilInterrupt(ctx, io.Stop, console.Interrupted("run the cluster", "run the same command again"))
	defer release()
	own, err := c.ClusterPorts()
	switch {
	case err != nil:
	case s.of.Unpublished:
		own = nil
	default:
		err = c.FreePorts(until)
	}
	if err != nil {
		return err
	}
	up := func() { ready(own) }
	if s.own == nil { // below dagger run
		return errors.Join(c.Up(until, own != nil, up), c.Down(ctx))
	}
	socket, log, err := files(s.of.Deployment)
	if err != nil {
		return err
	}
	info := background.Info{Deployment: s.of.Deployment, Session: s.own.Session, Node: c.NodeID(), Background: wait, Unpublished: s.of.Unpublished}
	if wait {
		info.Log = log
	}
	k, err := background.Serve(until, socket, info, &s.log, func(ready func()) error {
		err := c.Up(until, own != nil, ready)
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
				up()
			}
		}()
	}
	<-k.Done()
	cause := k.Cause()
	if errors.Is(cause, &fault.Fault{Code: containers.CodeNodeGone}) && k.Does(config.Destroy) {
		cause = nil // the destroy has ended the node
	}
	if work := k.Working(); work != "" {
		fmt.Fprintf(io.Err, "slipway: waiting for %s; interrupt again to stop at once\n", work)
	}
	k.Drain(ctx)
	return errors.Join(cause, c.Down(ctx), k.Close())
}

// watchEngine returns when the engine or the cluster no longer answers, or the socket is gone.
func watchEngine(ctx context.Context, c *conductor.Conductor, k *background.Server) error {
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

// Stop ends a deployment's background cluster. It is no error that there is none.
func Stop(ctx context.Context, out io.Writer, deployment string) error {
	socket, _, err := files(deployment)
	if err != nil {
		return err
	}
	found, err := background.Find(ctx, socket)
	switch {
	case err != nil:
		return err
	case found == nil:
		fmt.Fprintf(out, "the cluster of deployment %s does not run\n", deployment)
		return nil
	}
	if err := found.Stop(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "the cluster of deployment %s is stopped\n", deployment)
	return nil
}

// EndWithRun ends the joined session with this process: there is no cluster any longer.
func (s *Session) EndWithRun() { s.ends = true }
