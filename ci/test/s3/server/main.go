// The server speaks S3 for tests, from a directory of this machine: VersityGW,
// which honours conditional writes. Nothing of Slipway uses it in a run.
//
//	server --dir DIR --listen 127.0.0.1:7070 --bucket NAME
//
// Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. It is ready
// when GET /healthz answers, and ends with its standard input or a signal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stderr)) }

func run(args []string, in io.Reader, errw io.Writer) int {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(errw)
	dir := flags.String("dir", "", "directory that holds everything; made if it is not there")
	listen := flags.String("listen", "127.0.0.1:7070", "address to listen on")
	bucket := flags.String("bucket", "slipway", "bucket that is there from the start")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // whoever started it is gone
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	failed := make(chan error, 1)
	go func() { failed <- serve(ctx, *dir, *listen, *bucket) }()
	select {
	case <-ctx.Done(): // it waits for idle connections; nobody does for it
		return 0
	case err := <-failed:
		fmt.Fprintln(errw, "server:", err)
		return 1
	}
}

func serve(ctx context.Context, dir, listen, bucket string) error {
	if dir == "" {
		return errors.New("give --dir DIR")
	}
	objects := filepath.Join(dir, "objects")
	if err := os.MkdirAll(filepath.Join(objects, bucket), 0o700); err != nil {
		return err
	}
	// In attributes of the files: beside the files, a value and its checksum
	// would not be replaced together.
	if err := (meta.XattrMeta{}).Test(objects); err != nil {
		return fmt.Errorf("%s is on a file system without attributes; choose another directory: %w", dir, err)
	}
	backend, err := posix.New(objects, meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		return err
	}
	defer backend.Shutdown()
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: os.Getenv("AWS_ACCESS_KEY_ID"), RootUserSecret: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Ports: []string{listen}, HealthPath: "/healthz", Quiet: true, KeepAlive: true,
		MaxConnections: 1000, MaxRequests: 500, MultipartMaxParts: 10000,
	})
}
