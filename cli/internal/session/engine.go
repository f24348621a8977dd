package session

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"dagger.io/dagger"
	"dagger.io/dagger/engineconn"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
)

// codeNoEngine is what ci/dev/engine, a module of its own, says when there is none.
const codeNoEngine fault.Code = "ENG-008"

// connect opens a session on the Dagger engine, whose log goes to log. The
// session outlives ctx: a run that was interrupted still writes its record and
// stops its cluster. The caller closes the client.
func connect(ctx context.Context, log io.Writer) (*dagger.Client, error) {
	if err := reach(ctx); err != nil {
		return nil, err
	}
	type answer struct {
		client *dagger.Client
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		ctx := context.WithoutCancel(ctx)
		conn, err := engineconn.Get(ctx, &engineconn.Config{LogOutput: log})
		if err != nil {
			done <- answer{nil, err}
			return
		}
		client, err := dagger.Connect(ctx, dagger.WithConn(containers.DetectEnd(conn)))
		done <- answer{client, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, noEngine(a.err)
		}
		return a.client, nil
	case <-ctx.Done():
		go func() { // the process ends soon; a session that opens meanwhile is closed
			if a := <-done; a.client != nil {
				_ = a.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// opened is a Dagger session that this process opened itself, to lend it: the SDK
// does not say how to join the ones it opens.
type opened struct {
	background.Session
	input io.Closer
	cli   *exec.Cmd
	logs  *receiver
}

// openSession starts the dagger CLI as the SDK does (dagger.io/dagger v0.20.8,
// engineconn/session.go): it serves the session until its input ends, and says in
// the first line of its output where. What containers print goes to log.
func openSession(ctx context.Context, log io.Writer) (*opened, error) {
	if err := reach(ctx); err != nil {
		return nil, err
	}
	if os.Getenv(daggercli.EnvCLI) == "" {
		return nil, noEngine(fmt.Errorf("%s does not name the dagger CLI", daggercli.EnvCLI))
	}
	args := []string{"session", "--label", "dagger.io/sdk.name:go"}
	logs, err := receive(ctx, log)
	if err != nil {
		return nil, noEngine(err)
	}
	extra := logs.Environment()
	if extra != nil {
		args = append(args, "--silent")
	}
	s := &opened{cli: exec.Command(os.Getenv(daggercli.EnvCLI), args...), logs: logs} //nolint:noctx // its end is that of its input
	s.cli.Env = append(os.Environ(), extra...)
	s.cli.Stderr = logs
	var out io.Reader
	if s.input, err = s.cli.StdinPipe(); err == nil {
		out, err = s.cli.StdoutPipe()
	}
	if err == nil {
		err = s.cli.Start()
	}
	if err != nil {
		logs.Close()
		return nil, noEngine(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.input.Close() })
	defer stop()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s.Session)
	}
	if err != nil {
		s.end()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, noEngine(fmt.Errorf("read what the dagger CLI says of its session: %w", err))
	}
	return s, nil
}

// end ends the session.
func (s *opened) end() {
	_ = s.input.Close()
	_ = s.cli.Wait() // its exit code says nothing: attend kills one that does not end
	s.logs.Close()
}

// noEngine is the fault of an engine that cannot be reached.
func noEngine(err error) error {
	return &fault.Fault{Code: codeNoEngine, Class: fault.Preflight, Op: "connect to the Dagger engine",
		Fix: "start one with make engine, then eval \"$(make -s engine-env)\"", Err: err}
}

// engineLimit is how long an engine that starts may take to listen.
const engineLimit = 5 * time.Second

// reach waits for the engine, and has this program run in place of the dagger CLI.
func reach(ctx context.Context) error {
	if err := daggercli.Shield(); err != nil {
		return err
	}
	err := replies(ctx, os.Getenv(daggercli.EnvRunner))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return noEngine(err)
}

// replies returns nil once somebody listens where runner says that the engine is,
// a URL unix://PATH or tcp://HOST:PORT: the dagger CLI would try for five minutes.
// What it makes of other URLs, and of none, is left to it, as is a session that
// there is already.
func replies(ctx context.Context, runner string) error {
	network, address, ok := strings.Cut(runner, "://")
	if !ok || network != "unix" && network != "tcp" || os.Getenv(daggercli.EnvSession) != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waited %s for the engine at %s; last seen: %w", engineLimit, runner, err)
		}
	}
}
