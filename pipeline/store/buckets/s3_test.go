package buckets_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
)

const secretKey = "c4narySecretAccessKey"

func options() store.Options { return store.Options{Openers: buckets.All()} }

// s3Environment sets credentials for the SDK and prevents it from searching elsewhere.
func s3Environment(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAABCDEFGHIJKLMNOP")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
}

// s3Answering opens a store on a server with the same response to every request. What a
// real server does, ci/test/s3 tests.
func s3Answering(t *testing.T, status int, code string) *store.Store {
	t.Helper()
	s3Environment(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>for %s</Message></Error>", code, r.Header.Get("Authorization"))
	}))
	t.Cleanup(srv.Close)
	return openS3(t, "s3://bucket?region=us-east-1&use_path_style=true&endpoint="+srv.URL)
}

func openS3(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, options())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestS3_errors(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "NoSuchKey", fs.ErrNotExist},
		{404, "NoSuchBucket", &fault.Fault{Code: store.CodeNoBucket}},
		{403, "AccessDenied", &fault.Fault{Code: store.CodeRefused}},
		{403, "InvalidAccessKeyId", &fault.Fault{Code: store.CodeRefused}},
		{403, "SignatureDoesNotMatch", &fault.Fault{Code: store.CodeRefused}},
		{403, "SomethingNew", &fault.Fault{Code: store.CodeRefused}},
		{400, "ExpiredToken", &fault.Fault{Code: store.CodeRefused}},
		{404, "SomethingElse", &fault.Fault{Code: store.CodeUnreachable}},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := s3Answering(t, c.status, c.code)
			_, err := s.Get(t.Context(), "a/k")
			require.ErrorIs(t, err, c.want)
			require.NotContains(t, err.Error(), secretKey)
			require.NotContains(t, err.Error(), "AKIA")
			if _, coded := errors.AsType[*fault.Fault](err); coded {
				_, err := s.List(t.Context(), "")
				require.ErrorIs(t, err, c.want)
				err = s.Check(t.Context())
				require.ErrorIs(t, err, c.want)
				require.Equal(t, fault.Preflight, fault.ClassOf(err))
				require.ErrorIs(t, s.Put(t.Context(), "a/k", nil), c.want)
			}
		})
	}
}

func TestS3_create(t *testing.T) {
	require.ErrorIs(t, s3Answering(t, 412, "PreconditionFailed").Create(t.Context(), "k", []byte("x")), store.ErrExists)

	// A conflict of two writers is no answer: it is asked again.
	s3Environment(t)
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "*", r.Header.Get("If-None-Match"))
		if requests++; requests < 3 {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, "<Error><Code>ConditionalRequestConflict</Code></Error>")
		}
	}))
	defer srv.Close()
	s := openS3(t, "s3://bucket?region=us-east-1&use_path_style=true&endpoint="+srv.URL)
	require.NoError(t, s.Create(t.Context(), "k", []byte("x")))
	require.Equal(t, 3, requests)
}

func TestS3_unreachable(t *testing.T) {
	s3Environment(t)
	srv := httptest.NewServer(nil)
	srv.Close()
	s := openS3(t, "s3://bucket?region=us-east-1&use_path_style=true&endpoint="+srv.URL)
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeUnreachable})
	require.ErrorContains(t, err, "connection refused")
}

func TestS3_noCredentials(t *testing.T) {
	s3Environment(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	s := openS3(t, "s3://bucket?region=us-east-1")
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeRefused})
}

func TestS3_badParameters(t *testing.T) {
	s3Environment(t)
	for _, bad := range []string{"s3://b?nonsense=1", "s3://b?use_path_style=maybe", "s3://b?ssetype=rot13"} {
		_, err := store.Open(t.Context(), bad, options())
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeURL}, bad)
	}
}
