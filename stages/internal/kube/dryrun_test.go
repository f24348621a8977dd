package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func TestADryRunWritesNothing(t *testing.T) {
	var methods []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(namespaceObject())
	}))
	defer server.Close()
	c, err := kube.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	api := c.Kubernetes.CoreV1().Namespaces()
	dry := dryrun.Context(t.Context())

	_, err = api.Create(dry, namespaceObject(), metav1.CreateOptions{})
	require.ErrorIs(t, err, dryrun.ErrWouldChange)
	require.ErrorContains(t, err, "POST /api/v1/namespaces")
	require.False(t, kube.Transient(err), "it must not be tried again")
	require.ErrorIs(t, api.Delete(dry, "x", metav1.DeleteOptions{}), dryrun.ErrWouldChange)
	require.Empty(t, methods, "the server saw none of it")

	_, err = api.Get(dry, "x", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = api.Create(dry, namespaceObject(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	_, err = api.Create(dryrun.Allow(dry), namespaceObject(), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.Create(t.Context(), namespaceObject(), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"GET", "POST", "POST", "POST"}, methods)
}
