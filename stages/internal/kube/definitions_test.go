package kube

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// accepted is a definition whose names are accepted, as an API server leaves it that
// is killed before it establishes it.
func accepted(t *testing.T) (*definition, *dynamicfake.FakeDynamicClient, *[]string) {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "apps.example.com"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "NamesAccepted", "status": "True"}}},
	}}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: "CustomResourceDefinitionList"}, crd)
	var patches []string
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patches = append(patches, string(a.(clienttesting.PatchAction).GetPatch()))
		return false, nil, nil
	})
	return &definition{crds: client.Resource(gvr), name: "apps.example.com"}, client, &patches
}

func TestADefinitionThatAKilledServerForgotIsNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, patches := accepted(t)
		for range 3 {
			ok, why, err := d.served(t.Context())
			require.NoError(t, err)
			require.False(t, ok)
			require.Equal(t, "not established yet", why)
		}
		require.Empty(t, *patches, "it may be established in a moment")
		time.Sleep(overdue)
		for range 3 {
			_, _, err := d.served(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, []string{
			`{"metadata":{"annotations":{"slipway.sh/nudge":"true"}}}`, `{"metadata":{"annotations":{"slipway.sh/nudge":null}}}`,
		}, *patches, "once, and nothing of it stays")
	})
}

func TestANudgeThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, patches := accepted(t)
		_, _, err := d.served(t.Context())
		require.NoError(t, err)
		time.Sleep(overdue)
		broken := errors.New("broken")
		fail := true
		client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return fail, nil, broken })
		_, _, err = d.served(t.Context())
		require.ErrorIs(t, err, broken)
		fail = false
		_, _, err = d.served(t.Context())
		require.NoError(t, err)
		require.Len(t, *patches, 2)
	})
}
