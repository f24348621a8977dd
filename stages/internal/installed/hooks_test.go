package installed_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// hook is a ConfigMap, or a Job, that a hook makes.
func hook(kind, name, annotations string) string {
	return "---\n{apiVersion: " + kind + ", metadata: {name: " + name + ", namespace: shop, labels: {" + kube.DeploymentLabel + ": demo}, annotations: {" + annotations + "}}}\n"
}

const (
	job    = "batch/v1, kind: Job"
	config = "v1, kind: ConfigMap"
)

func TestWhatAChartRendersToIsRead(t *testing.T) {
	parts, err := installed.Parse("---\n# Source: a.yaml\n" + hook(config, "late", "helm.sh/hook: 'pre-install, post-install', helm.sh/hook-weight: '2'") +
		hook(job, "b", "helm.sh/hook: pre-install") + "---\n{apiVersion: v1, kind: Pod, metadata: {generateName: try-, annotations: {helm.sh/hook: test}}}\n" + hook(job, "a", "helm.sh/hook: pre-install") +
		"---\n{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}]}\n---\n# nothing\n")
	require.NoError(t, err)
	require.Len(t, parts.Objects, 1)
	require.Equal(t, "web", parts.Objects[0].GetName())
	var names []string
	for _, h := range parts.Hooks {
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"a", "b", "late"}, names, "in the order in which they run")
	require.True(t, parts.Hooks[2].On(release.HookPostInstall))
	require.False(t, parts.Hooks[0].On(release.HookPostInstall))

	text, err := installed.Text(parts.Hooks)
	require.NoError(t, err)
	packed, err := installed.Pack(text)
	require.NoError(t, err)
	again, err := installed.Unpack(packed)
	require.NoError(t, err)
	require.Equal(t, text, again)
	read, err := installed.Parse(again)
	require.NoError(t, err)
	require.Len(t, read.Hooks, 3)
	_, err = installed.Unpack("nonsense")
	require.Error(t, err)
}

// TestTheHooksOfAnEvent run one after the other; what they made goes where their policy says so.
func TestTheHooksOfAnEvent(t *testing.T) {
	const jobs, configs = "/apis/batch/v1/namespaces/shop/jobs/", "/api/v1/namespaces/shop/configmaps/"
	api := kubetest.Serve(t)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	parts, err := installed.Parse(hook(config, "settings", "helm.sh/hook: pre-install, helm.sh/hook-weight: '-1', helm.sh/hook-delete-policy: hook-succeeded") +
		hook(job, "first", "helm.sh/hook: pre-install") + hook(job, "second", "helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-failed") +
		hook(job, "other", "helm.sh/hook: post-install"))
	require.NoError(t, err)
	api.Set(t, jobs+"first", "{metadata: {name: first, namespace: shop, labels: {"+kube.DeploymentLabel+": demo}}, old: true}")
	var waited []string
	broken := errors.New("it failed")
	r := installed.Runner{Client: c, Deployment: "demo", Job: func(_ context.Context, _, name string) error {
		waited = append(waited, name)
		if name == "second" {
			return broken
		}
		return nil
	}}
	require.ErrorIs(t, r.Run(t.Context(), parts.Hooks, release.HookPreInstall), broken)
	require.Equal(t, []string{"first", "second"}, waited)
	require.Nil(t, api.Get(configs+"settings"), "it has succeeded")
	require.NotNil(t, api.Get(jobs+"first"))
	require.NotContains(t, api.Get(jobs+"first"), "old", "the earlier one goes before")
	require.Nil(t, api.Get(jobs+"second"), "it has failed")
	require.Nil(t, api.Get(jobs+"other"))
	require.Less(t, slices.Index(api.Writes(), "PATCH "+configs+"settings"), slices.Index(api.Writes(), "PATCH "+jobs+"first"))

	api.Set(t, jobs+"first", "metadata: {labels: {"+kube.DeploymentLabel+": another}}")
	waited = nil
	written := len(api.Writes())
	require.ErrorIs(t, r.Run(t.Context(), parts.Hooks, release.HookPreInstall), &fault.Fault{Code: kube.CodeForeign})
	require.Empty(t, waited)
	for _, w := range api.Writes()[written:] {
		require.NotContains(t, w, jobs+"first", "what is another deployment's is neither changed nor deleted")
	}
}
