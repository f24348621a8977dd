// Package gatewaytest has the S3 server of package gateway for tests.
package gatewaytest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/s3/gateway"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/s3"
)

// Open opens the store at a URL, with the credentials of the environment.
func Open(ctx context.Context, url string) (*store.Store, error) {
	return store.Open(ctx, url, store.Options{Openers: map[string]store.Opener{"s3": s3.Opener{}}})
}

// Start builds the server from the directory of its source and starts it until the test ends. It
// returns the server's address, and puts credentials for it into the environment.
func Start(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("AWS_ACCESS_KEY_ID", "access-key-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "c4nary-secret-access-key")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
	s, err := gateway.Serve(t.Context(), source, filepath.Join(dir, "s3"), FreeAddress(t), os.Environ())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		if t.Failed() {
			t.Logf("the server said: %s", s.Said())
		}
	})
	return s.Address
}

// FreeAddress is an address of this machine where nothing listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	address, err := gateway.Free("127.0.0.1")
	require.NoError(t, err)
	return address
}
