package infrastructure

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
)

func localAddons(t *testing.T) contract.AddonsInput {
	t.Helper()
	a, err := local.Provider{}.Addons()
	require.NoError(t, err)
	return contract.AddonsInput{
		Addons: a, Images: map[string]string{
			"coredns":                "slipway.local/coredns@sha256:01",
			"local-path-provisioner": "slipway.local/local-path-provisioner@sha256:02",
			"busybox":                "slipway.local/busybox@sha256:03",
		},
	}
}

func TestManifestUsesTheGivenImagesOnly(t *testing.T) {
	objs, err := renderAddons(localAddons(t))
	require.NoError(t, err)
	b, err := json.Marshal(objs)
	require.NoError(t, err)
	images := map[string]bool{}
	kinds := map[string]int{}
	for _, o := range objs {
		kinds[o.GetKind()]++
		require.Equal(t, "slipway-local", o.GetLabels()["app.kubernetes.io/part-of"], o.GetName())
		require.NotContains(t, o.GetLabels(), "app.kubernetes.io/managed-by", "platform-remove must leave the add-ons alone")
		if o.GetKind() != "Deployment" {
			continue
		}
		spec := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		for _, c := range spec["containers"].([]any) {
			images[c.(map[string]any)["image"].(string)] = true
		}
	}
	require.Equal(t, map[string]bool{
		"slipway.local/coredns@sha256:01": true, "slipway.local/local-path-provisioner@sha256:02": true,
	}, images)
	require.Equal(t, 2, kinds["Deployment"])
	require.Equal(t, 1, kinds["StorageClass"])
	require.Contains(t, string(b), `"clusterIP":"10.96.0.10"`)
	require.Contains(t, string(b), "image: slipway.local/busybox@sha256:03")
}

func TestManifestNamesEveryMissingImage(t *testing.T) {
	in := localAddons(t)
	delete(in.Images, "coredns")
	delete(in.Images, "busybox")
	_, err := renderAddons(in)
	require.ErrorContains(t, err, "there is no image coredns, busybox")
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeUnusable})
	require.Equal(t, fault.Step, fault.ClassOf(err))
}
