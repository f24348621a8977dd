package infrastructure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// TestNothingIsWrittenToAVolumeThatWaitsForSomebody: a claim of the check's might get it.
func TestNothingIsWrittenToAVolumeThatWaitsForSomebody(t *testing.T) {
	api := kubetest.Serve(t)
	api.Define("storage.k8s.io/v1", "StorageClasse", false)
	api.Set(t, "/apis/storage.k8s.io/v1/storageclasses/fast", "{metadata: {name: fast}, provisioner: example.com/disk}")
	api.Set(t, "/api/v1/persistentvolumes/other", "{metadata: {name: other}, spec: {storageClassName: slow}}")
	api.Set(t, "/api/v1/persistentvolumes/taken", "{metadata: {name: taken}, spec: {storageClassName: fast, claimRef: {namespace: shop, name: rows}}}")
	in := contract.StorageInput{StorageClass: "fast", Existing: true}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := storage(ctx, reaching(t, api.URL), in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeStorage}, "nobody runs the check's pod")
	require.Equal(t, []string{"PATCH /api/v1/namespaces/slipway-checks-demo"}, api.Writes(), "the check has begun")

	before := len(api.Writes())
	api.Set(t, "/api/v1/persistentvolumes/kept", "{metadata: {name: kept, annotations: {pv.kubernetes.io/provisioned-by: example.com/disk}}, spec: {storageClassName: fast}}")
	out, err := storage(t.Context(), reaching(t, api.URL), in)
	require.NoError(t, err)
	require.Equal(t, contract.StorageCheck{Class: "fast", Provisioner: "example.com/disk"}, out)
	require.Len(t, api.Writes(), before)
}

// TestOnlyAVolumeThatWasMadeForTheClaimGoesWithIt.
func TestOnlyAVolumeThatWasMadeForTheClaimGoesWithIt(t *testing.T) {
	const at = "/api/v1/persistentvolumes/data"
	for what, c := range map[string]struct {
		meta, policy, becomes, says string
	}{
		"made for it":             {"creationTimestamp: '2026-01-02T00:00:00Z', annotations: {pv.kubernetes.io/provisioned-by: example.com/disk}", "Retain", "Delete", ""},
		"made for it, and goes":   {"creationTimestamp: '2026-01-02T00:00:09Z', annotations: {pv.kubernetes.io/provisioned-by: example.com/disk}", "Delete", "Delete", ""},
		"lent":                    {"creationTimestamp: '2026-01-02T00:00:09Z'", "Retain", "Retain", "the claim got the volume data, which was not made for it"},
		"kept from another claim": {"creationTimestamp: '2026-01-01T00:00:00Z', annotations: {pv.kubernetes.io/provisioned-by: example.com/disk}", "Retain", "Retain", "the claim got the volume data, which was not made for it"},
	} {
		t.Run(what, func(t *testing.T) {
			api := kubetest.Serve(t)
			api.Set(t, at, "{metadata: {name: data, "+c.meta+"}, spec: {persistentVolumeReclaimPolicy: "+c.policy+"}}")
			client, err := kube.Connect(reaching(t, api.URL).Kubeconfig, nil)
			require.NoError(t, err)
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "data"}}
			require.NoError(t, claim.CreationTimestamp.UnmarshalQueryParameter("2026-01-02T00:00:00Z"))
			err = releasable(t.Context(), client, claim)
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
			spec, _ := api.Get(at)["spec"].(map[string]any)
			require.Equal(t, c.becomes, spec["persistentVolumeReclaimPolicy"])
		})
	}
}
