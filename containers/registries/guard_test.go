package registries

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// answering answers every request.
type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return httptest.NewRecorder().Result(), nil
}

func TestGuard(t *testing.T) {
	client := &http.Client{Transport: &Guard{Next: answering{}}}
	_, err := client.Get("http://registry.example.com:5000/v2/")
	require.ErrorContains(t, err, "plain HTTP is not allowed with registry.example.com:5000")
	require.True(t, WantsPlain(err, "registry.example.com:5000"))
	for _, url := range []string{"https://registry.example.com/v2/", "http://127.0.0.1:5000/v2/"} {
		_, err := client.Get(url)
		require.NoError(t, err, url)
	}
	client.Transport = &Guard{Next: answering{}, Allow: true}
	_, err = client.Get("http://registry.example.com:5000/v2/")
	require.NoError(t, err)
}

func TestARegistryThatIsNotThereDoesNotWantPlainHTTP(t *testing.T) {
	unanswered := errors.Join(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, errRefused)
	require.False(t, WantsPlain(unanswered, "10.0.0.1:5000"))
	require.True(t, WantsPlain(unanswered, "10.0.0.1"), "it may listen on port 80")
	require.True(t, WantsPlain(errRefused, "10.0.0.1:5000"))
	require.True(t, WantsPlain(http.ErrSchemeMismatch, "registry.example.com"))
	require.False(t, WantsPlain(&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "10.0.0.1"))
}
