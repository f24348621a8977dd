package helm

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/release"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// TestAMachineThatSleptChangesNoRelease: what Helm had decided to do before does not get to the
// server, and what is there can be read.
func TestAMachineThatSleptChangesNoRelease(t *testing.T) {
	var methods []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"kind":"SecretList","apiVersion":"v1","items":[]}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, server.URL), 0o600))

	ctx, sleep := kubetest.Work(t)
	config, err := Connect(ctx, nil, kubeconfig, "n", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	record := func(version int) *release.Release {
		return &release.Release{Name: "r", Namespace: "n", Version: version, Info: &release.Info{Status: release.StatusDeployed}}
	}
	require.NoError(t, config.Releases.Create(record(1)))
	require.Equal(t, []string{"POST"}, methods)

	sleep()
	for _, err := range []error{config.Releases.Create(record(2)), config.Releases.Update(record(1))} {
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	}
	releases, err := config.Releases.ListReleases()
	require.NoError(t, err)
	require.Empty(t, releases)
	require.Equal(t, []string{"POST", "GET"}, methods)
}
