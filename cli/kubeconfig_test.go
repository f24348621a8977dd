package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServersOfAKubeconfig(t *testing.T) {
	for _, good := range []string{"https://127.0.0.1:6443", "https://[::1]:6443", "https://k8s.example.com/clusters/1", "http://localhost:8001"} {
		require.True(t, isServer(good), good)
	}
	for _, bad := range []string{"not a url", "127.0.0.1:6443", "https://", "https://:6443", "ftp://x", "https://u:p@x", "https://x?y", "https://x#y", "https://x:port", "https://a b", "//x"} {
		require.False(t, isServer(bad), bad)
	}
}
