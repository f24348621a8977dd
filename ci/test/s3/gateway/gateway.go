// Package gateway builds and starts the S3 server of ../server for tests.
package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/s3"
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

// Open opens the store at a URL, with the credentials of the environment.
func Open(ctx context.Context, url string) (*store.Store, error) {
	return store.Open(ctx, url, store.Options{Openers: map[string]store.Opener{"s3": s3.Opener{}}})
}

// Start builds the server from the directory of its source and starts it until the test ends.
// It returns the server's address, and puts credentials for it into the environment.
func Start(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = source
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	t.Setenv("AWS_ACCESS_KEY_ID", "access-key-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "c4nary-secret-access-key")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
	address := FreeAddress(t)
	cmd := exec.Command(program, "--dir", filepath.Join(dir, "s3"), "--listen", address, "--bucket", Bucket)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	in, err := cmd.StdinPipe() // it ends with this process
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, <-ended)
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the server said: %s (%v)", text, err)
		}
	})
	require.Eventually(t, func() bool {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			ended <- err
			t.Fatalf("the server ended: %v: %s", err, text)
		default:
		}
		r, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			return false
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	return address
}

// FreeAddress is an address of this machine where nothing listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}
