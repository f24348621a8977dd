// Package gateway builds and starts the S3 server of ../server.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Bucket and Region are what the server has.
const (
	Bucket = "slipway"
	Region = "us-east-1"
)

// URL is that of a bucket, below a prefix, at a server's address.
func URL(address, bucket, prefix string) string {
	return fmt.Sprintf("s3://%s?region=%s&endpoint=http://%s&use_path_style=true&prefix=%s", bucket, Region, address, prefix)
}

// Server is a server that runs.
type Server struct {
	Address string // host:port
	dir     string
	stdin   io.Closer // it ends with it, and so with this process
	ended   chan error
}

// Serve builds the server from the directory of its source and starts it, with all that it
// has below a directory, on an address of this machine, host:port. env holds the credentials that
// it takes, as in os.Environ.
func Serve(ctx context.Context, source, dir, address string, env []string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Server{Address: address, dir: dir, ended: make(chan error, 1)}
	program, err := filepath.Abs(filepath.Join(dir, "server"))
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", source, "-ldflags=-s -w", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the S3 server: %w: %s", err, out)
	}
	log, err := os.Create(s.log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()                                                  // the server has it
	cmd := exec.Command(program, "--dir", dir, "--listen", address, "--bucket", Bucket) // Close ends it
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is not for it
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the S3 server: %w", err)
	}
	go func() { s.ended <- cmd.Wait() }()
	if err := s.await(ctx); err != nil {
		_ = s.stdin.Close()
		return nil, fmt.Errorf("start the S3 server: %w: %s", err, s.Said())
	}
	return s, nil
}

// startLimit is how long the server may take to answer.
const startLimit = time.Minute

// await returns once the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no answer within %s", startLimit))
	defer cancel()
	for {
		if r, err := http.Get("http://" + s.Address + "/healthz"); err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK {
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Objects is the directory with the files of the bucket, whose paths are their keys.
func (s *Server) Objects() string { return filepath.Join(s.dir, "objects", Bucket) }

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// Said is what the server has printed.
func (s *Server) Said() string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Close ends the server.
func (s *Server) Close() error { return errors.Join(s.stdin.Close(), <-s.ended) }

// Free is an address of this machine where nothing listens, at an address without a port.
func Free(host string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
