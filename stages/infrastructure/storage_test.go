package infrastructure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
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
