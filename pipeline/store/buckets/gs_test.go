package buckets_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// googleAnswering opens a store on a server with the same response to every request. No test
// runs against a real Google Cloud.
func googleAnswering(t *testing.T, status int, message string) *store.Store {
	t.Helper()
	return googleServing(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%d,"message":%q}}`, status, message)
	}))
}

func googleServing(t *testing.T, h http.Handler) *store.Store {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(srv.URL, "http://"))
	s, err := store.Open(t.Context(), "gs://bucket?anonymous=true", options())
	require.NoError(t, err)
	return s
}

func TestGoogleStorage_errors(t *testing.T) {
	_, err := googleAnswering(t, 404, "No such object: bucket/a/k").Get(t.Context(), "a/k")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, c := range []struct {
		status int
		want   fault.Code
	}{{401, store.CodeRefused}, {403, store.CodeRefused}, {400, store.CodeUnreachable}} {
		s := googleAnswering(t, c.status, "no")
		_, err := s.Get(t.Context(), "a/k")
		require.ErrorIs(t, err, &fault.Fault{Code: c.want}, c.status)
		require.ErrorIs(t, s.Check(t.Context()), &fault.Fault{Code: c.want}, c.status)
		require.ErrorIs(t, s.Put(t.Context(), "a/k", []byte("x")), &fault.Fault{Code: c.want}, c.status)
	}
	s := googleAnswering(t, 404, "The specified bucket does not exist.")
	require.ErrorIs(t, s.Check(t.Context()), &fault.Fault{Code: store.CodeNoBucket})
	require.ErrorIs(t, s.Put(t.Context(), "a/k", []byte("x")), &fault.Fault{Code: store.CodeNoBucket})
	require.ErrorIs(t, googleAnswering(t, 412, "no").Create(t.Context(), "k", []byte("x")), store.ErrExists)
}

func TestGoogleStorage_asksForAbsence(t *testing.T) {
	var conditions []string
	s := googleServing(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conditions = append(conditions, r.URL.Query().Get("ifGenerationMatch"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"name":"k","bucket":"bucket","size":"1"}`)
	}))
	require.NoError(t, s.Create(t.Context(), "k", []byte("x")))
	require.Equal(t, []string{"0"}, conditions, "one request, with the condition")
}

func TestGoogleStorage_open(t *testing.T) {
	for _, bad := range []string{"gs://b?anonymous=true&nonsense=1"} {
		_, err := store.Open(t.Context(), bad, options())
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeURL}, bad)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	_, err := store.Open(t.Context(), "gs://b", options())
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeRefused})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "credentials")
}
