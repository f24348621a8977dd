package buckets_test

import (
	"encoding/base64"
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

const canary = "c4naryAccountKey"

func azureEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING", "AZURE_STORAGE_DOMAIN", "AZURE_STORAGE_PROTOCOL"} {
		t.Setenv(name, "")
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", base64.StdEncoding.EncodeToString([]byte(canary)))
}

// azureAnswering opens a store on a server with the same response to every request. No test
// runs against a real Azure.
func azureAnswering(t *testing.T, status int, code string) *store.Store {
	t.Helper()
	azureEnvironment(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>for %s</Message></Error>`, code, r.Header.Get("Authorization"))
	}))
	t.Cleanup(srv.Close)
	s, err := store.Open(t.Context(), "azblob://container?protocol=http&domain="+strings.TrimPrefix(srv.URL, "http://"), options())
	require.NoError(t, err)
	return s
}

func TestAzureBlob_errors(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "BlobNotFound", fs.ErrNotExist},
		{404, "ContainerNotFound", &fault.Fault{Code: store.CodeNoBucket}},
		{403, "AuthenticationFailed", &fault.Fault{Code: store.CodeRefused}},
		{403, "AuthorizationPermissionMismatch", &fault.Fault{Code: store.CodeRefused}},
		{403, "SomethingNew", &fault.Fault{Code: store.CodeRefused}},
		{404, "SomethingElse", &fault.Fault{Code: store.CodeUnreachable}},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := azureAnswering(t, c.status, c.code)
			_, err := s.Get(t.Context(), "a/k")
			require.ErrorIs(t, err, c.want)
			require.NotContains(t, err.Error(), base64.StdEncoding.EncodeToString([]byte(canary)))
			if _, coded := errors.AsType[*fault.Fault](err); coded {
				require.ErrorIs(t, s.Check(t.Context()), c.want)
				require.ErrorIs(t, s.Put(t.Context(), "a/k", nil), c.want)
			}
		})
	}
	require.ErrorIs(t, azureAnswering(t, 409, "BlobAlreadyExists").Create(t.Context(), "k", []byte("x")), store.ErrExists)
	require.ErrorIs(t, azureAnswering(t, 412, "ConditionNotMet").Create(t.Context(), "k", []byte("x")), store.ErrExists)
}

func TestAzureBlob_asksForAbsence(t *testing.T) {
	azureEnvironment(t)
	var conditions []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conditions = append(conditions, r.Header.Get("If-None-Match"))
		w.WriteHeader(http.StatusCreated)
	}))
	defer srv.Close()
	s, err := store.Open(t.Context(), "azblob://container?protocol=http&domain="+strings.TrimPrefix(srv.URL, "http://"), options())
	require.NoError(t, err)
	require.NoError(t, s.Create(t.Context(), "k", []byte("x")))
	require.Equal(t, []string{"*"}, conditions, "one request, with the condition")
}

func TestAzureBlob_badParameters(t *testing.T) {
	azureEnvironment(t)
	bad := &fault.Fault{Code: store.CodeURL}
	for _, url := range []string{"azblob://c?nonsense=1", "azblob://c?protocol=ftp", "azblob://c?cdn=maybe"} {
		_, err := store.Open(t.Context(), url, options())
		require.ErrorIs(t, err, bad, url)
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	_, err := store.Open(t.Context(), "azblob://c", options())
	require.ErrorIs(t, err, bad)

	// A token is sent nowhere but where the environment says.
	azureEnvironment(t)
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=c4nary")
	_, err = store.Open(t.Context(), "azblob://c?domain=elsewhere.example.com", options())
	require.ErrorIs(t, err, bad)
	require.NotContains(t, err.Error(), "c4nary")
	_, err = store.Open(t.Context(), "azblob://c?prefix=a/b", options())
	require.NoError(t, err)
}
