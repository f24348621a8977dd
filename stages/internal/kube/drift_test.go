package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func TestDriftIsWhatApplyingWouldChange(t *testing.T) {
	api, c := onFake(t)
	_, err := c.Apply(t.Context(), objects(t, web+old), kube.ApplyOptions{})
	require.NoError(t, err)
	drift := func() []kube.Applied {
		out, err := c.Drift(t.Context(), objects(t, web+old), kube.ApplyOptions{Force: true})
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

func TestWhatWasScaledToNoneGetsAPodAgain(t *testing.T) {
	api, c := onFake(t)
	objs := objects(t, web)
	_, err := c.Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	up, err := c.ScaleUp(t.Context(), objs, "")
	require.NoError(t, err)
	require.Empty(t, up)

	api.Set(t, atWeb, "spec: {replicas: 0}")
	_, err = c.ScaleUp(dryrun.Context(t.Context()), objs, "")
	require.ErrorIs(t, err, dryrun.ErrWouldChange)
	up, err = c.ScaleUp(t.Context(), objs, "")
	require.NoError(t, err)
	require.Equal(t, []string{"Deployment ns/web"}, up)
	require.EqualValues(t, 1, api.Get(atWeb)["spec"].(map[string]any)["replicas"])

	none := objects(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns}, spec: {replicas: 0}}")
	api.Set(t, atWeb, "spec: {replicas: 0}")
	up, err = c.ScaleUp(t.Context(), none, "")
	require.NoError(t, err)
	require.Empty(t, up, "none is what it declares")
}
