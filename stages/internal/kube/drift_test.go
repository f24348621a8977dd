package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func TestDriftIsWhatApplyingWouldChange(t *testing.T) {
	api, c := onFake(t)
	_, err := c.Apply(t.Context(), objects(t, web+old), kube.ApplyOptions{})
	require.NoError(t, err)
	drift := func() []kube.Applied {
		out, err := c.Drift(t.Context(), objects(t, web+old), kube.ApplyOptions{})
		require.NoError(t, err)
		return out
	}
	require.Empty(t, drift())
	api.Set(t, atWeb, "spec: {template: {spec: {containers: [{name: web, image: i, command: [b]}]}}}")
	api.Set(t, atOld, "data: {k: edited}")
	require.Equal(t, []kube.Applied{
		{Kind: "Deployment", Namespace: "ns", Name: "web", Change: kube.Changed}, {Kind: "ConfigMap", Namespace: "ns", Name: "old", Change: kube.Changed},
	}, drift())
	require.Equal(t, "edited", api.Get(atOld)["data"].(map[string]any)["k"], "looking writes nothing")
}
