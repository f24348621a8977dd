package readiness_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// TestPodsOfAStoppedClusterAreWaitedFor, but not for ever.
func TestPodsOfAStoppedClusterAreWaitedFor(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 || r.URL.Path == "/never" {
			http.Error(w, "shop/web-0 is\nnot ready", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	var told strings.Builder
	c := &kube.Client{Progress: func(format string, args ...any) { fmt.Fprintf(&told, format+"\n", args...) }}
	readiness.AwaitPods(t.Context(), c, "")
	require.Zero(t, asked.Load())
	readiness.AwaitPods(t.Context(), c, server.URL)
	require.Equal(t, int32(3), asked.Load())
	require.Empty(t, told.String())

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	readiness.AwaitPods(ctx, c, server.URL+"/never")
	require.Regexp(t, `^not every pod is back: waited [0-9.]+s for .*shop/web-0 is not ready`, told.String())
}

func TestReadHealth(t *testing.T) {
	for text, want := range map[string]string{
		`{"ready":true,"parts":{"pods":{"state":"ready"}},"components":{"etcd":{"state":"running"}}}`: "its node says that it is ready",
		"not found\n": "its node says: not found",
		`{"a":1}`:     `its node says: {"a":1}`,
	} {
		require.Equal(t, want, readiness.ReadHealth(text))
	}
}
