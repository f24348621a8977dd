// Package s3 tests what Slipway keeps in S3 against a real server, which honours conditional writes:
// the VersityGW that ./server pins, built and started on this machine.
// The SDK under test is the one that users get: ci/test/go.mod follows that of the program,
// and the server has a module of its own.
package s3

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Bucket and Region are what the server has.
const (
	Bucket = "slipway"
	Region = "us-east-1"
)

// URL names a bucket and a prefix on a server.
func URL(address, bucket, prefix string) string {
	return fmt.Sprintf("s3://%s?region=%s&endpoint=http://%s&use_path_style=true&prefix=%s", bucket, Region, address, prefix)
}

// Server is a server that runs.
type Server struct {
	Address string // host:port
	dir     string
}

// Start builds the server from the directory of its module and runs it on a host of this machine
// until the test ends. It takes the credentials of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in
// env, which is more of its environment.
func Start(t *testing.T, source, host string, env ...string) *Server {
	t.Helper()
	s := &Server{Address: Free(t, host), dir: t.TempDir()}
	program := filepath.Join(s.dir, "versitygw")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", source, "-ldflags=-s -w", "-o", program, "github.com/versity/versitygw/cmd/versitygw").CombinedOutput()
	require.NoError(t, err, "build the S3 server: %s", out)
	log, err := os.Create(filepath.Join(s.dir, "log"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(s.Objects(), 0o700))
	const script = `"$1" --access "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" --port "$2" --health /healthz --quiet posix "$3" & read -r _; kill -9 $!`
	cmd := exec.Command("sh", "-c", script, "sh", program, s.Address, filepath.Dir(s.Objects()))
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is not for it
	stdin, err := cmd.StdinPipe()                         // it ends with it, and so with this process
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		err := cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() || err != nil {
			t.Logf("the S3 server said: %s", text)
		}
		require.NoError(t, err)
		require.NoError(t, log.Close())
	})
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + s.Address + "/healthz")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond, "the S3 server does not answer")
	return s
}

// Objects is the directory with the files of the bucket, whose paths are their keys.
func (s *Server) Objects() string { return filepath.Join(s.dir, "objects", Bucket) }

// Free is an address of this machine where nothing listens, at an address without a port.
func Free(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
