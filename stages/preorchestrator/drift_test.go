package preorchestrator

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// TestWhatSomebodyEditedIsNoUnchangedRelease: an upgrade brings it back.
func TestWhatSomebodyEditedIsNoUnchangedRelease(t *testing.T) {
	const (
		deployment = "/apis/apps/v1/namespaces/git/deployments/gitea"
		config     = "/api/v1/namespaces/git/configmaps/gitea"
	)
	objs, err := kube.Decode([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: gitea}
spec: {replicas: 1, template: {spec: {containers: [{name: gitea, image: i, command: [web], env: [{name: A, value: a}]}]}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {app.ini: x}}
`))
	require.NoError(t, err)
	for what, edit := range map[string]struct{ path, text, want string }{
		"none":       {deployment, "{}", ""},
		"scaled":     {deployment, "spec: {replicas: 0}", "Deployment/gitea would be changed"},
		"a variable": {deployment, "spec: {template: {spec: {containers: [{name: gitea, image: i, command: [web], env: [{name: A, value: b}]}]}}}", "Deployment/gitea would be changed"},
		"a command":  {deployment, "spec: {template: {spec: {containers: [{name: gitea, image: i, command: [sh], env: [{name: A, value: a}]}]}}}", "Deployment/gitea would be changed"},
		"a file":     {config, "data: {app.ini: y}", "ConfigMap/gitea would be changed"},
	} {
		t.Run(what, func(t *testing.T) {
			api := kubetest.Serve(t)
			client, err := kube.New(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			_, err = client.Apply(t.Context(), objs, kube.ApplyOptions{Namespace: "git"})
			require.NoError(t, err)
			api.Set(t, edit.path, edit.text)
			r := &chartRelease{client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git"}
			found, err := r.drift(t.Context(), objs)
			require.NoError(t, err)
			if edit.want == "" {
				require.Empty(t, found)
			} else {
				require.Equal(t, []string{edit.want}, found)
			}
		})
	}
}

// TestWhatWasScaledUpIsSaid: a release whose pods were brought back is not unchanged.
func TestWhatWasScaledUpIsSaid(t *testing.T) {
	const deployment = "/apis/apps/v1/namespaces/git/deployments/gitea"
	manifest := []byte("{apiVersion: apps/v1, kind: Deployment, metadata: {name: gitea}, spec: {template: {}}}")
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &api.URL
	r := &chartRelease{
		client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git",
		chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "gitea", Version: "1.0.0"},
			Templates: []*chart.File{{Name: "templates/gitea.yaml", Data: manifest}},
		},
		config: &action.Configuration{
			Releases: storage.Init(driver.NewMemory()), KubeClient: &helmkube.PrintingKubeClient{Out: io.Discard},
			RESTClientGetter: flags, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
		},
	}
	change, err := r.converge(t.Context())
	require.NoError(t, err)
	require.Equal(t, installed, change)
	objs, err := kube.Decode(manifest)
	require.NoError(t, err)
	_, err = client.Apply(t.Context(), objs, kube.ApplyOptions{Namespace: "git"})
	require.NoError(t, err)
	api.Set(t, deployment, "spec: {replicas: 0}")
	for _, want := range []string{scaledUp, unchanged} {
		change, err = r.converge(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, change)
	}
}
