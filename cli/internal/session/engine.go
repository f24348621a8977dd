package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dagger.io/dagger"
	"dagger.io/dagger/engineconn"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
)

// codeNoEngine is what ci/dev/engine, a module of its own, says when there is none.
const codeNoEngine fault.Code = "ENG-008"

// connect opens a session on the Dagger engine. It outlives ctx: an interrupted run still writes its record and
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

// opened is a session that this process can lend: the SDK does not say how to join the sessions it opens.
type opened struct {
	background.Session
	input io.Closer
	cli   *exec.Cmd
	logs  *receiver
}

// openSession starts the dagger CLI as the SDK does (dagger.io/dagger v0.20.8, engineconn/session.go): it serves
// the session until its input ends, and prints its address in the first line.
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
	s := &opened{cli: exec.Command(os.Getenv(daggercli.EnvCLI), args...), logs: logs} //nolint:noctx // it ends with its input
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

func (s *opened) end() {
	_ = s.input.Close()
	_ = s.cli.Wait() // its exit code says nothing: attend kills a CLI that does not end
	s.logs.Close()
}

func noEngine(err error) error {
	return &fault.Fault{Code: codeNoEngine, Class: fault.Preflight, Op: "connect to the Dagger engine",
		Fix: "start one with make engine, then eval \"$(make -s engine-env)\"", Err: err}
}

// engineLimit is how long a starting engine may take to listen.
const engineLimit = 5 * time.Second

// reach waits for the engine, and makes this program run in place of the dagger CLI.
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

// replies waits until the engine listens at runner, because the dagger CLI would try for five minutes. It leaves
// other URLs and existing sessions to the CLI.
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

// Directory is a directory of this machine, or the one with the id in idFile. fresh: the engine reads it again.
func Directory(client *dagger.Client, path, idFile string, fresh bool) (*dagger.Directory, error) {
	if idFile != "" {
		id, err := bounded.File(idFile, bounded.Written)
		if err != nil {
			return nil, fmt.Errorf("read the directory's id: %w", err)
		}
		return client.LoadDirectoryFromID(dagger.DirectoryID(id)), nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return nil, &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "open " + path,
			Fix: "give the path of a directory that exists", Err: err}
	}
	return client.Host().Directory(abs, dagger.HostDirectoryOpts{NoCache: fresh}), nil
}
