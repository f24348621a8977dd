package infrastructure

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/step"
)

// memory opens buckets in memory in the place of S3's.
type memory struct{}

func (memory) OpenBucketURL(context.Context, *url.URL) (*blob.Bucket, error) {
	return memblob.OpenBucket(nil), nil
}

func (memory) Kind(err error) store.Kind {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return store.Absent
	}
	return store.Other
}

func (memory) Credentials() []string { return nil }

// inBucket is an environment whose state is in a bucket.
func inBucket(t *testing.T) (*step.Env, *store.Store) {
	t.Helper()
	env := newEnv(t, "/nowhere", io.Discard)
	env.Backend.URL, env.Backend.Openers = "s3://bucket", map[string]store.Opener{"s3": memory{}}
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	return env, s
}

// serve starts a backend, and returns what asks it.
func serve(t *testing.T, ctx context.Context, env *step.Env) (b *backend, ask func(method, body string) (int, string)) {
	t.Helper()
	b, err := serveState(ctx, env)
	require.NoError(t, err)
	return b, func(method, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, b.address, strings.NewReader(body))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
}

// TestBackend: Terraform's state is a value of the deployment's store, wherever that is.
func TestBackend(t *testing.T) {
	for what, open := range map[string]func(*testing.T) (*step.Env, *store.Store){
		"bucket": inBucket,
		"volume": func(t *testing.T) (*step.Env, *store.Store) {
			env := newEnv(t, "/nowhere", io.Discard)
			s, err := env.Store(t.Context())
			require.NoError(t, err)
			return env, s
		},
	} {
		t.Run(what, func(t *testing.T) {
			env, s := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			b, ask := serve(t, ctx, env)
			code, _ := ask("GET", "")
			require.Equal(t, http.StatusNoContent, code)
			_, err := currentState(t.Context(), env)
			require.ErrorIs(t, err, fs.ErrNotExist)

			code, _ = ask("POST", `{"version":4,"serial":1}`)
			require.Equal(t, http.StatusOK, code)
			code, text := ask("GET", "")
			require.Equal(t, http.StatusOK, code)
			require.JSONEq(t, `{"version":4,"serial":1}`, text)

			cancel()
			code, _ = ask("POST", `{"version":4,"serial":2}`)
			require.Equal(t, http.StatusOK, code, "what is done is stored, also when the step was told to end")
			keys, err := s.List(t.Context(), "terraform/")
			require.NoError(t, err)
			require.Equal(t, []string{"terraform/000000000000.tfstate"}, keys)
			seen, err := currentState(t.Context(), env)
			require.NoError(t, err)
			require.EqualValues(t, 2, seen.Serial)

			for _, method := range []string{"PUT", "DELETE", "LOCK"} {
				code, _ = ask(method, "")
				require.Equal(t, http.StatusMethodNotAllowed, code)
			}
			resp, err := http.Get(b.address[:strings.LastIndex(b.address, "/")] + "/")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusNotFound, resp.StatusCode, "one must know where it is")
			require.NoError(t, b.because(nil))
			require.NoError(t, b.close())
			_, err = http.Get(b.address)
			require.Error(t, err)
		})
	}
}

// TestBackend_refuses: what cannot be stored is told to Terraform, and to who runs it in
// the store's words.
func TestBackend_refuses(t *testing.T) {
	env, s := inBucket(t)
	lost := &fault.Fault{Code: "LOK-002", Class: fault.Locked, Err: io.EOF}
	refuses := error(lost)
	b, ask := serve(t, t.Context(), env)
	defer func() { require.NoError(t, b.close()) }()
	b.server.Handler = handler("/x", s.Fenced(func(context.Context) error { return refuses }), 3, b)
	b.address = b.address[:strings.LastIndex(b.address, "/")] + "/x"
	code, text := ask("POST", `{}`)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "terraform/000000000003.tfstate")
	require.ErrorIs(t, b.because(io.ErrUnexpectedEOF), lost)
	require.ErrorIs(t, badTerraform(CodeTerraform, "apply", b.because(io.ErrUnexpectedEOF)), lost)
	refuses = &fault.Fault{Code: store.CodeUnreachable, Class: fault.Timeout, Err: io.EOF}
	code, _ = ask("POST", `{}`)
	require.Equal(t, http.StatusServiceUnavailable, code, "Terraform may try again")
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
	refuses = nil
	code, _ = ask("POST", `{}`)
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, b.because(nil), "it is stored now")
}

func TestBackendBlock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, (&backend{address: "http://127.0.0.1:1/x"}).write(dir))
	text, err := os.ReadFile(filepath.Join(dir, backendFile))
	require.NoError(t, err)
	require.JSONEq(t, `{"terraform":{"backend":{"http":{"address":"http://127.0.0.1:1/x"}}}}`, string(text))
}

func TestTerraformDoesNotGetTheStatesCredentials(t *testing.T) {
	got := environment([]string{"AZURE_STORAGE_KEY=k", "AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=r", "TF_LOG=trace", "SLIPWAY_STATE_URL=u"}, "/dir")
	require.Equal(t, map[string]string{"AWS_REGION": "r", "CHECKPOINT_DISABLE": "1", "HOME": "/dir"}, got)
}

// TestAnErroredStateIsKept, and named in each run until somebody has dealt with it.
func TestAnErroredStateIsKept(t *testing.T) {
	var log bytes.Buffer
	env := newEnv(t, "/nowhere", &log)
	dir := t.TempDir()
	require.NoError(t, keepErrored(t.Context(), env, dir))
	require.NoError(t, reportErrored(t.Context(), env))
	require.Empty(t, log.String())
	require.NoError(t, os.WriteFile(filepath.Join(dir, errored), []byte("{}"), 0o600))
	require.NoError(t, keepErrored(t.Context(), env, dir))
	require.Contains(t, log.String(), "what Terraform has done is not in its state: it is in file:")
	require.NoError(t, reportErrored(t.Context(), env))
	require.Contains(t, log.String(), "unsaved/r1.tfstate: look for resources that are there twice")
	require.FileExists(t, filepath.Join(env.StateDir, "unsaved/r1.tfstate"))
}
