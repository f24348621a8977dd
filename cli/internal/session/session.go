// Package session opens a session on the Dagger engine, or joins the one of a background cluster.
package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/containers/daggercli"
)

// Lifetime says for how long a local cluster that a command starts is to run.
type Lifetime int

const (
	Ends       Lifetime = iota // it ends with the command, unless it ran before
	Foreground                 // this process lends its session until it ends
	AfterRun                   // it becomes a background cluster, even after a failed run
	Background                 // the same, if it comes up
)

// Options are what a session is for.
type Options struct {
	Deployment  string
	Lifetime    Lifetime
	Unpublished bool     // a cluster that outlives the command gets no ports of this machine
	Workflow    string   // of a run that changes something; empty: none
	Args        []string // flags for the background cluster's process
	Stdin       []byte   // what it reads
	Verbose     bool
}

// Session is a session on the Dagger engine.
type Session struct {
	Client *dagger.Client
	Joined *background.Client // of the process that owns the session; nil: this one does
	// Origin marks the containers of this process if others may work in the session; else empty.
	Origin string

	of    Options
	leave func()
	ends  bool           // the joined session ends with this process
	own   *opened        // the session that this process lends; nil: none
	log   background.Log // of that session
}

// Open joins the session of the deployment's background cluster, or opens its own. The caller closes it.
func Open(ctx context.Context, io console.Streams, of Options) (s *Session, err error) {
	s = &Session{of: of}
	origin := rand.Text()[:8]
	log := console.EngineLog(io.Err, of.Verbose, origin)
	leave := func() {}
	switch {
	case os.Getenv(daggercli.EnvSession) != "": // dagger run, or the module
		if s.of.Lifetime != Ends && s.of.Lifetime != Foreground {
			return nil, usage.Errorf("%s names a session, and nothing outlives that", daggercli.EnvSession)
		}
	case s.of.Lifetime == Foreground:
		leave, err = s.open(ctx, log)
	default:
		leave, err = s.join(ctx, io, log)
	}
	if err != nil {
		return nil, err
	}
	if s.Client, err = connect(ctx, log); err != nil {
		leave()
		return nil, err
	}
	s.leave = leave
	if s.Joined != nil || s.own != nil {
		s.Origin = origin
	}
	return s, nil
}

// Anew calls do with a new session: in one session, the engine asks a Git server for its refs only once.
func (s *Session) Anew(ctx context.Context, do func(*dagger.Client)) (err error) {
	for _, name := range []string{daggercli.EnvSession, daggercli.EnvToken} {
		value := os.Getenv(name)
		if err := os.Unsetenv(name); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Setenv(name, value)) }()
	}
	client, err := connect(ctx, io.Discard)
	if err != nil {
		return err
	}
	do(client)
	return client.Close()
}

// Close leaves the session, and ends it unless the cluster outlives this process.
func (s *Session) Close() {
	_ = s.Client.Close()
	s.leave()
}

// open prepares connect for a session of this process, which it may lend.
func (s *Session) open(ctx context.Context, log io.Writer) (end func(), err error) {
	socket, _, err := files(s.of.Deployment)
	if err != nil {
		return nil, err
	}
	if other, err := background.Find(ctx, socket); err != nil || other != nil {
		return nil, errors.Join(err, other.Already())
	}
	if s.own, err = openSession(ctx, io.MultiWriter(log, &s.log)); err != nil {
		return nil, err
	}
	if err := enter(s.own.Session); err != nil {
		s.own.end()
		return nil, err
	}
	return func() {
		exit()
		s.own.end()
	}, nil
}

// join prepares connect to join the background cluster's session, and starts that cluster if the command wants it.
func (s *Session) join(ctx context.Context, io console.Streams, log io.Writer) (leave func(), err error) {
	socket, _, err := files(s.of.Deployment)
	if err != nil {
		if s.of.Lifetime == Ends {
			return func() {}, nil // without a cache there is no background cluster
		}
		return nil, err
	}
	if s.Joined, err = background.Find(ctx, socket); err != nil {
		return nil, err
	}
	if s.Joined == nil && s.of.Lifetime != Ends {
		if s.Joined, err = s.background(ctx, io); err != nil {
			return nil, err
		}
		s.ends = true // until the cluster is there
	}
	if s.Joined == nil {
		return func() {}, nil
	}
	left, err := s.Joined.Attend(ctx, s.of.Workflow, log)
	if err != nil && s.ends {
		return nil, errors.Join(err, s.Joined.Stop(ctx))
	}
	if err != nil {
		return nil, err
	}
	if err := enter(s.Joined.Session); err != nil {
		left()
		return nil, err
	}
	return func() {
		exit()
		left()
		if !s.ends {
			return
		}
		if err := s.Joined.Stop(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintf(io.Err, "slipway: stop the background cluster of process %d: %v\n", s.Joined.PID, err)
		}
	}, nil
}

// enter makes the SDK connect to a session.
func enter(s background.Session) error {
	return errors.Join(os.Setenv(daggercli.EnvSession, strconv.Itoa(s.Port)), os.Setenv(daggercli.EnvToken, string(s.Token)))
}

func exit() {
	_ = os.Unsetenv(daggercli.EnvSession)
	_ = os.Unsetenv(daggercli.EnvToken)
}
