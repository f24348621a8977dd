package existing_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/conformance"
	"github.com/slipway-sh/slipway/providers/existing"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Suite{
		Provider: existing.Provider{},
		Valid: []string{
			`{"kubeconfig": "file:~/.kube/config"}`,
			`{"kubeconfig": "env:KUBECONFIG_TEXT", "context": "arn:aws:eks:eu-central-1:1:cluster/a", "storageClass": "fast"}`,
			`{"kubeconfig": "cmd:pass show kubeconfig", "registry": "registry.internal:5000/team/slipway"}`,
		},
		Invalid: []string{
			`{}`, `{"kubeconfig": "~/.kube/config"}`, `{"kubeconfig": "apiVersion: v1"}`, `{"kubeconfig": {}}`,
			`{"kubeconfig": "file:x", "context": "a\nb"}`, `{"kubeconfig": "file:x", "storageClass": "Fast"}`,
			`{"kubeconfig": "file:x", "registry": "https://registry.internal"}`, `{"kubeconfig": "file:x", "registry": "me:secret@registry"}`,
			`{"kubeconfig": "file:x", "addresses": []}`,
		},
	})
}

func TestAKubeconfigIsNeverQuoted(t *testing.T) {
	for _, p := range (existing.Provider{}).Validate(json.RawMessage(`{"kubeconfig": "token: hunter2"}`)) {
		require.NotContains(t, p.String(), "hunter2")
	}
}

func TestAccess(t *testing.T) {
	d := providers.Deployment{Section: json.RawMessage(`{"kubeconfig": "file:x", "context": "c", "storageClass": "fast", "registry": "r/s"}`)}
	cluster, err := existing.Provider{}.Cluster(d)
	require.NoError(t, err)
	require.Equal(t, providers.Cluster{External: &providers.ExternalCluster{Kubeconfig: "file:x", Context: "c", StorageClass: "fast", Registry: "r/s"}}, cluster)
}
