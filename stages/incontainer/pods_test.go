package incontainer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestPodsThatDoNotComeBackAreNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/back" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"ready": true, "parts": {"api": {"state": "ready", "detail": "it answers"}, "pods": {"state": "waiting", "detail": "1 of 2 pods are not ready again: web/site-0"}}}`)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	wait := func(url string) (said string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var b strings.Builder
		err = awaitPods(ctx, kubeconfig, url, &b)
		return b.String(), err
	}
	said, err := wait(server.URL + "/back")
	require.ErrorIs(t, err, &fault.Fault{Code: "ACC-001"})
	require.Empty(t, said)
	require.NoError(t, os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: '"+server.URL+"'}}]}"), 0o600))
	said, err = wait(server.URL + "/back")
	require.NoError(t, err)
	require.Empty(t, said)
	said, err = wait(server.URL + "/never")
	require.NoError(t, err)
	require.Regexp(t, `^slipway: infrastructure/node: not every pod is back: waited \d(\.\d)?s for the pods that ran before to run again; last seen: its node says: pods is waiting \(1 of 2 pods are not ready again: web/site-0\)\n$`, said)
}
